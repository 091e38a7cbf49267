"""What a recipe is composed of: allocation, curriculum, contrast, row makers. The rest have rooms of their own."""
