#!/bin/bash
# The starting policy of scripts/smollm2/night.sh: SmolLM2-135M, cloned from demonstrations of three task types in small
# generated houses whose demonstrator heats, cools and cleans with the skill alone. Some 40 minutes of one core.
# scripts/smollm2/start.sh FOLDER; the adapters alone, 10 MB, are in FOLDER/adapter. Needs the extra 'gguf'.
# From outside: EPISODES, PRECISION (float32 where the processor has no instructions for bfloat16; the command says so),
# DEVICE (cuda: a minute), ERRORS (how often the demonstrator fails without the skill; below 1 an open start, which wins
# at times without it).
set -euo pipefail
out=${1:?the folder to write is missing}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
episodes=${EPISODES:-320} precision=${PRECISION:-bfloat16} device=${DEVICE:-cpu} errors=${ERRORS:-1.0}

skillc get-model smollm2-135m
skillc tools make-policy --env alfworld --start smollm2-135m --chat compact --context-weight 0 --precision "${precision%_copy}" \
    --task-types heat cool clean --no-thoughts --error-rate-without-skill "$errors" --episodes "$episodes" \
    --batches $((episodes / 4)) --batch-episodes 4 --max-length 2048 --held-out 12 --lora-rank 16 --learning-rate 1e-3 \
    --device "$device" --out "$out"
