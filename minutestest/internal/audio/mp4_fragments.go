package audio

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

const (
	mp4MaxTracks = 16 // more are not measured; recordings have one or two
	mp4FixedSize = 24 // as much as the fields of a box ever take before its table
)

// Flags of tfhd and trun for the fields that are there.
const (
	tfhdBaseDataOffset   = 0x000001
	tfhdDescriptionIndex = 0x000002
	tfhdDuration         = 0x000008

	trunDataOffset = 0x000001
	trunFirstFlags = 0x000004
	trunDuration   = 0x000100
	trunPerSample  = 0x000F00 // the fields of a sample, four bytes each; its duration is the first of them
)

// mp4Track is what the duration of a track's fragments follows from. Times are in units of the track's timescale.
type mp4Track struct {
	id        uint64
	timescale uint64
	sample    uint64 // duration of a sample if its fragment has none
	sound     bool
	edited    bool   // priming is known
	priming   uint64 // what the edit list leaves out at the start
	now       uint64 // end of the last samples; at most toEnd, which durationOf rejects
	end       uint64 // the latest end of any fragment
}

// duration returns how long the fragments make the track, 0 if it has none. A picture's edit list does not make it
// shorter: it omits only the delay of frames that are shown in another order than they are decoded in.
func (t *mp4Track) duration() time.Duration {
	end := t.end
	if t.sound {
		end -= min(t.priming, end)
	}
	return durationOf(end, t.timescale)
}

// advance moves on by the duration of some samples.
func (t *mp4Track) advance(units uint64) {
	now, carry := bits.Add64(t.now, units, 0)
	if carry > 0 {
		now = toEnd
	}
	t.now = now
}

// mp4Fragments reads the boxes that show how long a movie's fragments are: those of a track in moov, and those of a
// fragment, traf, in moof. A fragment is counted once its boxes are read, whether its media data arrives or not.
//
// Tables are read row by row, since a table may be of any length.
type mp4Fragments struct {
	tracks [mp4MaxTracks]mp4Track
	n      int
	track  *mp4Track // the track that boxes are about; nil is one that is not known
	sample uint64    // in a fragment, the duration of a sample if trun has none

	// The table that is being read.
	table  mp4Table
	rows   uint64 // still to come
	stride int    // bytes in a row
	left   uint64 // bytes of its box still to come
}

type mp4Table int

const (
	mp4Edits   mp4Table = iota // elst
	mp4Times                   // stts
	mp4Samples                 // trun
)

// find returns a track by its id, or nil.
func (f *mp4Fragments) find(id uint64) *mp4Track {
	for i := range f.tracks[:f.n] {
		if f.tracks[i].id == id {
			return &f.tracks[i]
		}
	}
	return nil
}

// findOrAdd is find for a box in moov. It returns nil if there are too many tracks.
func (f *mp4Fragments) findOrAdd(id uint64) *mp4Track {
	if t := f.find(id); t != nil || f.n == len(f.tracks) {
		return t
	}
	t := &f.tracks[f.n]
	f.n++
	t.id = id
	return t
}

// enter begins a box that holds others.
func (f *mp4Fragments) enter(kind string) {
	if kind == "trak" || kind == "traf" {
		f.track = nil
	}
}

// parse reads a box other than a movie's header. The window begins behind the box's own header, size is what the box
// has from there on. It returns what a parser's parse does. A box that is too short for its fields is stepped over.
func (f *mp4Fragments) parse(kind string, window []byte, size uint64) (advance uint64, need int) {
	be := binary.BigEndian
	fixed := int(min(size, mp4FixedSize))
	if len(window) < fixed {
		return 0, fixed
	}
	b := window[:fixed]
	if len(b) < 8 { // version and flags, and there is no box of interest without another field
		return size, 0
	}
	// One byte of version, three of flags. Version 1 has times of 64 bits, version 0 of 32.
	flags, word := be.Uint32(b), 4
	if b[0] == 1 {
		word = 8
	}

	switch kind {
	case "tkhd":
		if at := 4 + 2*word; len(b) >= at+4 { // created, modified, id
			f.track = f.findOrAdd(uint64(be.Uint32(b[at:])))
		}
		return size, 0
	case "trex":
		if len(b) >= 16 { // id, description, duration
			if t := f.findOrAdd(uint64(be.Uint32(b[4:]))); t != nil {
				t.sample = uint64(be.Uint32(b[12:]))
			}
		}
		return size, 0
	case "tfhd":
		f.header(b, flags)
		return size, 0
	}

	t := f.track
	if t == nil {
		return size, 0
	}
	switch count := uint64(be.Uint32(b[4:])); kind {
	case "smhd":
		t.sound = true
	case "mdhd":
		if at := 4 + 2*word; len(b) >= at+4 { // created, modified, timescale
			t.timescale = uint64(be.Uint32(b[at:]))
		}
	case "elst":
		return f.begin(mp4Edits, 8, count, 2*word+4, size), 0
	case "stts":
		return f.begin(mp4Times, 8, count, 8, size), 0
	case "tfdt":
		if len(b) >= 4+word {
			t.now = mp4Uint(b[4 : 4+word])
		}
	case "trun":
		at := 8
		for _, flag := range []uint32{trunDataOffset, trunFirstFlags} {
			if flags&flag != 0 {
				at += 4
			}
		}
		if len(b) < at {
			break
		}
		stride := 4 * bits.OnesCount32(flags&trunPerSample)
		if flags&trunDuration != 0 {
			return f.begin(mp4Samples, at, count, stride, size), 0
		}
		t.advance(mp4Rows(count, stride, size-uint64(at)) * f.sample) // of 32 bits each
		t.end = max(t.end, t.now)
	}
	return size, 0
}

// header reads tfhd, the header of a fragment.
func (f *mp4Fragments) header(b []byte, flags uint32) {
	be := binary.BigEndian
	f.track = f.find(uint64(be.Uint32(b[4:])))
	if f.track == nil {
		return
	}
	f.sample = f.track.sample
	if flags&tfhdDuration == 0 {
		return
	}
	at := 8
	if flags&tfhdBaseDataOffset != 0 {
		at += 8
	}
	if flags&tfhdDescriptionIndex != 0 {
		at += 4
	}
	if len(b) >= at+4 {
		f.sample = uint64(be.Uint32(b[at:]))
	}
}

// begin starts a table at an offset in its box, and returns how far to advance.
func (f *mp4Fragments) begin(table mp4Table, at int, count uint64, stride int, size uint64) uint64 {
	f.table, f.stride, f.left = table, stride, size-uint64(at)
	f.rows = mp4Rows(count, stride, f.left)
	if f.rows == 0 {
		return size
	}
	return uint64(at)
}

// mp4Rows is how many rows of a table there are. A count is not believed beyond what the box has room for, but rows
// without fields take none.
func mp4Rows(count uint64, stride int, room uint64) uint64 {
	if stride == 0 {
		return count
	}
	return min(count, room/uint64(stride))
}

// parseRows reads the rows that the window holds. It returns what a parser's parse does.
func (f *mp4Fragments) parseRows(window []byte) (advance uint64, need int) {
	n := 0
	for ; f.rows > 0 && len(window)-n >= f.stride; n += f.stride {
		f.rows--
		f.row(window[n : n+f.stride])
	}
	switch {
	case f.rows == 0:
		return f.left, 0
	case n == 0:
		return 0, f.stride
	}
	f.left -= uint64(n)
	return uint64(n), 0
}

func (f *mp4Fragments) row(b []byte) {
	be := binary.BigEndian
	t := f.track
	switch f.table {
	case mp4Edits: // duration, time in the media, rate; the time is -1 where nothing is played
		word := (len(b) - 4) / 2
		from := mp4Uint(b[word : 2*word])
		if negative := from>>(8*word-1) != 0; !negative && !t.edited {
			t.priming, t.edited = from, true
		}
	case mp4Times: // count, duration of each: the samples in moov, before the first fragment
		t.advance(uint64(be.Uint32(b)) * uint64(be.Uint32(b[4:])))
	case mp4Samples:
		t.advance(uint64(be.Uint32(b)))
		t.end = max(t.end, t.now)
	}
}

// duration is that of the longest track, leaving out any that is longer than can be.
func (f *mp4Fragments) duration() (longest time.Duration) {
	for i := range f.tracks[:f.n] {
		longest = longer(longest, f.tracks[i].duration())
	}
	return longest
}

// longer returns the longer of two durations, or longest if the other is not plausible: one damaged box must not hide
// the others.
func longer(longest, d time.Duration) time.Duration {
	if d > maxDuration {
		return longest
	}
	return max(longest, d)
}

// mp4Uint reads a number of 32 or 64 bits.
func mp4Uint(b []byte) uint64 {
	if len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return uint64(binary.BigEndian.Uint32(b))
}

// mp4Time reads a duration of 32 or 64 bits. All ones mean that it is not known, as does 0.
func mp4Time(b []byte) uint64 {
	d := mp4Uint(b)
	if d == math.MaxUint64 || len(b) == 4 && d == math.MaxUint32 {
		return 0
	}
	return d
}
