"""Skills as folders of text (SKILL.md), and their loader."""
