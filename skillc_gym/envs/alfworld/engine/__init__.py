"""The game itself: state, rules, goals and wording."""
