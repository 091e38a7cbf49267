"""Serves paired episodes; another environment or data set is one line."""

from functools import partial

import uvicorn

from skillc_gym.adapters import ChatEnv
from skillc_gym.adapters.openenv import create_server

app = create_server(partial(ChatEnv, "alfworld", data="generated"), sessions=64)


def main() -> None:
    """Serves without a container."""
    uvicorn.run(app, host="0.0.0.0", port=8000)


if __name__ == "__main__":
    main()
