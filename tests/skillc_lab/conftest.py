"""What the laboratory's tests share with the trainers'."""

from tests.trainers.conftest import toy_folder

__all__ = ["toy_folder"]
