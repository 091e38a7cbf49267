"""Features of products' pictures, which upstream gives agents that see: an optional file of one vector per picture."""

from __future__ import annotations

import os
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skillc_gym.errors import CatalogError, MissingDataError

FEATURES = 512
"""The length of upstream's vectors, and of the zeros for a page without a picture."""


class ImageFeatures:
    """The features of pictures by their addresses.

    ``path`` is an ``.npz`` file with ``urls`` (N texts) and ``features`` (N, 512). Upstream's two files become one by
    ``numpy.savez(path, urls=torch.load("feat_ids.pt"), features=torch.load("feat_conv.pt"))``. MissingDataError if
    there is no such file, CatalogError if it holds something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with np.load(path, allow_pickle=False) as kept:
                urls, self._features = kept["urls"], np.asarray(kept["features"], np.float32)
        except FileNotFoundError as error:
            raise MissingDataError(
                f"There is no file of features {os.fspath(path)!r}; leave image_features= out, or name an .npz file "
                "with urls and features."
            ) from error
        except (EOFError, OSError, TypeError, ValueError, KeyError, BadZipFile) as error:
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
