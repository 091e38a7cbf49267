"""Where games come from: folders, archives, splits and their manifests."""
