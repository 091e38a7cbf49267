#!/bin/bash
# SmolLM2-135M in small generated houses on one core: a warm start on an expert's episodes, a short SkillC run, and
# success with and without skills on held-out houses before and after. scripts/smollm2/run.sh FOLDER
#
# What can be changed from outside: EPISODES of the warm start, STEPS of SkillC, PER_TYPE tasks of an evaluation.
set -euo pipefail
out=${1:?the folder to write is missing}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
episodes=${EPISODES:-240} steps=${STEPS:-12} per_type=${PER_TYPE:-4}
world=(env=alfworld data=generated 'env.generator={"seed": 0, "size": "small", "games_per_type": 400}')
words=(chat=compact 'chat.role=household agent' max_context=2048 max_reply_tokens=40 max_episode_steps=20)
same=("${world[@]}" "${words[@]}" precision=bfloat16 eval_temperature=0.4)

skillc get-model smollm2-135m
skillc tools make-policy --env alfworld --start smollm2-135m --chat compact --context-weight 0 --precision bfloat16 \
    --episodes "$episodes" --batches $((episodes / 4)) --batch-episodes 4 --learning-rate 1e-4 --max-length 2048 \
    --held-out 24 --out "$out/start"
skillc evaluate model="$out/start" "${same[@]}" split=valid_unseen --per-type "$per_type" --out "$out/before"
skillc train model="$out/start" "${same[@]}" method=skillc steps="$steps" tasks_per_step=4 group_size=4 micro_batches=4 \
    learning_rate=1e-5 kl_coef=0 task_sampling=types panel_per_type=1 validate_every=6 save_every=3 run="$out/run"
skillc evaluate model="$out/run/policy" "${same[@]}" split=valid_unseen --per-type "$per_type" --out "$out/after"
skillc report "$out/run" --before "$out/before" --after "$out/after"
