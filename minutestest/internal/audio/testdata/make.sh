#!/bin/sh
# Makes every recording of this folder anew from one spoken sentence, and prints for each what ffprobe says its duration
# is, and how long it is once ffmpeg has decoded it.
# Needs espeak-ng, sox, lame, flac, opus-tools, vorbis-tools, speex and ffmpeg.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
voice=$tmp/voice.wav
espeak-ng -v en-gb -s 170 -w "$tmp/full.wav" "Good morning, let us begin."
sox "$tmp/full.wav" "$voice" trim 0 1.5
ff() { ffmpeg -nostdin -v error -y -fflags +bitexact -i "$@"; }
rm -f ./*.wav ./*.mp[234] ./*.m4a ./*.mov ./*.flac ./*.og[ga] ./*.opus ./*.spx

# WAV
sox "$voice" -r 8000 -b 8 pcm8.wav trim 0 1
sox "$voice" -r 8000 -e mu-law mulaw.wav trim 0 1
sox "$voice" -r 8000 -e ms-adpcm adpcm.wav trim 0 1
sox "$voice" -r 8000 -e gsm-full-rate gsm.wav
sox "$voice" -r 8000 -b 24 -c 2 extensible.wav trim 0 0.1
ff "$voice" -ar 8000 -c:a pcm_u8 -rf64 always rf64.wav
ff "$voice" -ar 8000 -c:a pcm_u8 -f wav - | cat >piped.wav

# MPEG audio
lame --quiet --resample 22.05 -b 16 --tt "A title" --add-id3v2 "$voice" cbr.mp3
lame --quiet --resample 44.1 -V 9 "$voice" vbr.mp3
lame --quiet --resample 16 -b 16 -t "$voice" notag.mp3
ff "$voice" -ar 8000 -b:a 8k mpeg25.mp3
ff "$voice" -ar 48000 -b:a 32k -c:a libmp3lame -ac 2 -joint_stereo 1 stereo.mp3
ff "$voice" -ar 22050 -b:a 8k -c:a mp2 layer2.mp2
cat cbr.mp3 mpeg25.mp3 >joined.mp3

# FLAC
sox "$voice" -r 8000 -b 8 "$tmp/8k.wav" trim 0 0.5
flac --totally-silent --best -o plain.flac "$tmp/8k.wav"
flac --totally-silent --best -c - <"$tmp/8k.wav" | cat >piped.flac
flac --totally-silent --best --ogg --serial-number 1 -o flac.oga "$tmp/8k.wav"

# Ogg
opusenc --quiet --bitrate 8 --serial 2 "$voice" voice.opus
oggenc --quiet -q -1 --resample 8000 -s 3 -o voice.ogg "$voice" 2>/dev/null
sox "$voice" -r 8000 "$tmp/narrow.wav"
speexenc --quality 1 --nframes 3 "$tmp/narrow.wav" voice.spx 2>/dev/null
opusenc --quiet --bitrate 8 --serial 3 "$voice" "$tmp/second.opus"
cat voice.opus "$tmp/second.opus" >chained.ogg
ff "$voice" -f lavfi -i color=c=black:s=32x32:r=5:d=1.5 -map 1:v -map 0:a -c:v libtheora -ar 8000 -c:a libvorbis -q:a -1 -f ogg video.ogg

# MP4
ff "$voice" -ar 8000 -b:a 8k -c:a aac moov-last.m4a
ff "$voice" -ar 8000 -b:a 8k -c:a aac -movflags +faststart moov-first.m4a
ff "$voice" -ar 8000 -b:a 8k -c:a aac -movflags +frag_keyframe+empty_moov fragmented.mp4
ff "$voice" -f lavfi -i color=c=black:s=32x32:r=5:d=1.5 -map 1:v -map 0:a -ar 8000 -b:a 8k -c:a aac -c:v mpeg4 video.mov

for f in *.wav *.mp3 *.mp2 *.flac *.oga *.ogg *.opus *.spx *.m4a *.mp4 *.mov; do
	container=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$f")
	decoded=$(ffmpeg -nostdin -v error -i "$f" -map 0:a:0 -ac 1 -ar 48000 -f s16le - 2>/dev/null | wc -c)
	printf '%s %s %s\n' "$f" "$container" "$((decoded / 96))ms"
done
