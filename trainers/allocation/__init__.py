"""How many rollouts of a group see the skill: pure rules, one small file each."""
