"""Features of products' pictures, which upstream gives agents that see: an optional file of one vector per picture."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from skillc_gym.errors import CatalogError, MissingDataError

FEATURES = 512
"""The length of upstream's vectors, and of the zeros for a page without a picture."""

MAX_BYTES = 1 << 28
"""Unpacked size of a file that was packed; ``numpy.savez`` packs nothing, and such a file is as large as it is."""


class ImageFeatures:
    """The features of pictures by their addresses.

    ``path`` is an ``.npz`` file with ``urls`` (N texts) and ``features`` (N, 512). Upstream's two files become one by
    ``numpy.savez(path, urls=torch.load("feat_ids.pt"), features=torch.load("feat_conv.pt"))``. MissingDataError if
    there is no such file, CatalogError if it holds something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
            if size > max(MAX_BYTES, 2 * Path(path).stat().st_size):
                raise ValueError(f"it unpacks to {size:,} bytes; at most {MAX_BYTES:,} are read of a packed one")
            with np.load(path, allow_pickle=False) as kept:
                urls, self._features = kept["urls"], np.asarray(kept["features"], np.float32)
        except FileNotFoundError as error:
            raise MissingDataError(
                f"There is no file of features {os.fspath(path)!r}; leave image_features= out, or name an .npz file "
                "with urls and features."
            ) from error
        except (EOFError, OSError, TypeError, ValueError, KeyError, MemoryError, BadZipFile) as error:
            raise CatalogError(f"{os.fspath(path)!r} is no .npz file with urls and features: {error}") from error
        if (*urls.shape, FEATURES) != self._features.shape or urls.ndim != 1:
            raise CatalogError(
                f"{os.fspath(path)!r} needs N urls and features of shape (N, {FEATURES}), as upstream has them; got "
                f"{urls.shape} and {self._features.shape}."
            )
        self._rows = {str(url): row for row, url in enumerate(urls)}

    def of(self, url: str) -> NDArray[np.float32]:
        """Returns the features of a picture, zeros for an unknown one: float32 of shape (512,)."""
        row = self._rows.get(url)
        return np.zeros(FEATURES, np.float32) if row is None else self._features[row].copy()
