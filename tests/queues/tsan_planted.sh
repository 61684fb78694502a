#!/bin/sh
# Requires ThreadSanitizer to report each planted race and nothing in the rig without one.
# Usage: tsan_planted.sh [folder with the tsan_planted_N programs]
dir=${1:-tests/queues}
failed=0
for plant in 0 1 2 3; do
	TSAN_OPTIONS="exitcode=66:halt_on_error=1" timeout 60 "$dir/tsan_planted_$plant" >/dev/null 2>&1
	got=$?
	want=66
	[ $plant -eq 0 ] && want=0
	if [ $got -eq $want ]; then
		echo "ok   planted race $plant: exit code $got"
	else
		echo "FAIL planted race $plant: exit code $got instead of $want"
		failed=1
	fi
done
exit $failed
