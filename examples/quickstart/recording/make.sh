#!/bin/sh
# Speaks standup.txt, each label in a voice of its own, and writes standup.mp3. Needs espeak-ng and ffmpeg.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

turn=0
while IFS= read -r line; do
	case $line in
	"spk_0: "*) voice=en-gb speed=175 pitch=40 ;;
	"spk_1: "*) voice=en-us+f3 speed=180 pitch=60 ;;
	*) echo "no speaker label: $line" >&2; exit 1 ;;
	esac
	turn=$((turn + 1))
	name=$(printf %03d "$turn").wav
	espeak-ng -v "$voice" -s "$speed" -p "$pitch" -w "$tmp/said.wav" "${line#spk_?: }" </dev/null
	# A short silence follows each turn.
	ffmpeg -nostdin -v error -i "$tmp/said.wav" -af apad=pad_dur=0.35 -ar 22050 -ac 1 "$tmp/$name"
	echo "file '$name'" >>"$tmp/turns"
done <standup.txt

ffmpeg -nostdin -v error -y -f concat -i "$tmp/turns" -ac 1 -ar 22050 -c:a libmp3lame -b:a 24k \
	-fflags +bitexact -flags:a +bitexact -map_metadata -1 -id3v2_version 0 standup.mp3
