package minutes

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"math/bits"
	"net/http"
	"slices"
	"strings"
)

// content recognises the format of a recording by its bytes.
type content struct {
	audio io.ReaderAt
	// err is the first error of reading. After it, there are no more bytes.
	err error
	// head has as many bytes as http.DetectContentType considers.
	head [512]byte
	// few has what is read elsewhere.
	few [16]byte
}

// read fills p from an offset, and returns what it got, which is less at the end.
func (c *content) read(p []byte, at int64) []byte {
	if c.err != nil {
		return nil
	}
	n, err := c.audio.ReadAt(p, at)
	if err != nil && err != io.EOF {
		c.err = err
		return nil
	}
	return p[:n]
}

// format returns the MIME type of the recording, or "".
func (c *content) format() string {
	head := c.read(c.head[:], 0)
	if isText(head) { // such as "ID3 tags", while recordings have binary data behind the word
		return ""
	}
	var at int64
	found := ""
	for range 3 {
		length := tagLength(head)
		if length == 0 {
			break
		}
		if head[0] == 'I' {
			found = "audio/mpeg" // unless the tag is that of another format, such as FLAC or AAC
		}
		at += length
		head = c.read(c.head[:], at)
	}
	return cmp.Or(formatOf(head), c.formatOfFrames(at), found)
}

// isText reports whether there is no byte that the MIME Sniffing Standard calls binary.
func isText(head []byte) bool {
	return !bytes.ContainsFunc(head, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\f\r\x1b", r)
	})
}

// problem says why content in this format, which is "" if it is unknown, cannot be a whole recording,
// or returns "".
func (c *content) problem(format string) string {
	if format != "" {
		if c.lacksMovie() {
			return "an MP4 file without an index (moov), so the recorder did not finish it, or its end is missing"
		}
		return ""
	}
	head := c.read(c.head[:], 0)
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	known := kind != "application/octet-stream" && !isMedia(kind)
	if !known && isText(head) {
		kind = "text/plain"
		known = true
	}
	if known {
		return kind + ", not a recording"
	}
	return ""
}

// tagLength returns the length of the tag with which head begins, or 0: of ID3, whose size has seven
// bits a byte, or of APEv2.
func tagLength(head []byte) int64 {
	switch {
	case len(head) >= 32 && string(head[:8]) == "APETAGEX":
		return 32 + int64(binary.LittleEndian.Uint32(head[12:]))
	case len(head) < 10 || string(head[:3]) != "ID3":
		return 0
	}
	size := int64(10)
	if head[5]&0x10 != 0 {
		size += 10 // a footer
	}
	for i, b := range head[6:10] {
		size += int64(b&0x7f) << (21 - 7*i)
	}
	return size
}

// lacksMovie reports whether the recording is an MP4 or QuickTime file whose boxes end without a
// movie, which says how to read the others. Recorders write it last, unless they write fragments.
func (c *content) lacksMovie() bool {
	var at int64
	for range 64 { // a file has three or four boxes before it
		head := c.read(c.few[:], at)
		switch {
		case at == 0 && !isBox(head, "ftyp", "moov", "mdat", "wide"), isBox(head, "moov", "moof"):
			return false
		case len(head) < 8:
			return true
		}
		size := uint64(binary.BigEndian.Uint32(head))
		if size == 1 && len(head) == 16 {
			size = binary.BigEndian.Uint64(head[8:])
		}
		switch {
		case size == 0 || size > MaxRecordingSize: // up to the end, or beyond it
			return true
		case size < 8: // it is not a box
			return false
		}
		at += int64(size)
	}
	return false
}

// isBox reports whether head begins with a box of one of the types.
func isBox(head []byte, types ...string) bool {
	return len(head) >= 8 && slices.Contains(types, string(head[4:8]))
}

// formatOf returns the MIME type of the first format that head matches, or "".
func formatOf(head []byte) string {
	for _, f := range formats {
		if beginsLike(head, f.begins) && (f.also == nil || f.also(head)) {
			return f.contentType
		}
	}
	return ""
}

// beginsLike reports whether head begins with pattern, in which ? stands for any byte.
func beginsLike(head []byte, pattern string) bool {
	if len(head) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != head[i] {
			return false
		}
	}
	return true
}

// formats lists how recordings begin. The first match counts.
var formats = []struct {
	// begins is how the content begins; ? stands for any byte.
	begins string
	// also, unless it is nil, must be true of the first 512 bytes.
	also        func(head []byte) bool
	contentType string
}{
	{"RIFF????WAVE", nil, "audio/wav"},
	{"RF64????WAVE", nil, "audio/wav"}, // longer than 4 GiB, but field recorders use it for all
	{"BW64????WAVE", nil, "audio/wav"},
	{"RIFX????WAVE", nil, "audio/wav"},
	{"riff\x2e\x91\xcf\x11", nil, "audio/x-w64"}, // Sony Wave64
	{"FORM????AIFF", nil, "audio/aiff"},
	{"FORM????AIFC", nil, "audio/aiff"},
	{".snd", nil, "audio/basic"},    // AU
	{"dns.", nil, "audio/basic"},    // the same, little-endian, from libsndfile
	{"\x00ds.", nil, "audio/basic"}, // and from SoX
	{"caff", nil, "audio/x-caf"},    // Core Audio: iMessage, recorders of iOS and macOS
	{"fLaC", nil, "audio/flac"},
	{"OggS", hasPictures, "video/ogg"},
	{"OggS", nil, "audio/ogg"},
	{"#!AMR-WB", nil, "audio/amr-wb"},
	{"#!AMR", nil, "audio/amr"},
	{"#!SILK", nil, "audio/silk"}, // voice messages of Tencent's messengers
	{"\x02#!SILK", nil, "audio/silk"},
	{"\x02dss", nil, "audio/x-dss"}, // dictation machines
	{"\x03dss", nil, "audio/x-dss"},
	{"\x03ds2", nil, "audio/x-ds2"},

	// The brand of an MP4 file. Only some brands show whether it has pictures.
	{"????ftypM4A", nil, "audio/mp4"},
	{"????ftypM4B", nil, "audio/mp4"},
	{"????ftypM4P", nil, "audio/mp4"},
	{"????ftypF4A", nil, "audio/mp4"},
	{"????ftypF4B", nil, "audio/mp4"},
	{"????ftyp3gp", nil, "video/3gpp"},
	{"????ftyp3ge", nil, "video/3gpp"},
	{"????ftyp3gr", nil, "video/3gpp"},
	{"????ftyp3gs", nil, "video/3gpp"},
	{"????ftyp3g2", nil, "video/3gpp2"},
	{"????ftypqt", nil, "video/quicktime"},
	{"????ftyp", nil, "video/mp4"},
	{"????styp", nil, "video/mp4"}, // a segment of a stream
	{"????moov", nil, "video/quicktime"},
	{"????mdat", nil, "video/quicktime"},
	{"????wide", nil, "video/quicktime"},

	{"\x1a\x45\xdf\xa3", hasDocType("webm"), "video/webm"},
	{"\x1a\x45\xdf\xa3", hasDocType("matroska"), "video/x-matroska"},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", nil, "video/x-ms-asf"}, // Windows Media, also without pictures
	{"RIFF????AVI ", nil, "video/avi"},
	{"FLV\x01", nil, "video/x-flv"},
	{"\x00\x00\x01\xba", nil, "video/mpeg"}, // program stream
	{"\x00\x00\x01\xb3", nil, "video/mpeg"},
	{transportStream(188), nil, "video/mp2t"},
	{"????" + transportStream(192), nil, "video/mp2t"}, // of camcorders, with a time before each packet
	{"\xff", hasEncoderFrame, "audio/mpeg"},
	{"ADIF", nil, "audio/aac"},
}

// transportStream returns how an MPEG transport stream begins: each packet begins with G.
func transportStream(packet int) string {
	next := strings.Repeat("?", packet-1) + "G"
	return "G" + next + next
}

// hasPictures reports whether a stream of an Ogg file is video. All streams begin on the first pages.
func hasPictures(head []byte) bool {
	for _, codec := range []string{"\x80theora", "OVP80", "BBCD\x00"} { // Theora, VP8, Dirac
		if bytes.Contains(head, []byte(codec)) {
			return true
		}
	}
	return false
}

// hasDocType returns a function that reports whether the DocType of an EBML file is docType. An
// element is its id, its size, which takes as many bytes as its first byte has leading zeros and
// one, and its content. Some writers add a NUL.
func hasDocType(docType string) func(head []byte) bool {
	return func(head []byte) bool {
		_, element, _ := bytes.Cut(head, []byte{0x42, 0x82})
		if len(element) == 0 {
			return false
		}
		size := bits.LeadingZeros8(element[0]) + 1
		return len(element) > size && bytes.HasPrefix(element[size:], []byte(docType))
	}
}

// hasEncoderFrame reports whether an MP3 begins with the frame in which encoders describe the
// recording. Its place depends on the version of MPEG and the number of channels.
func hasEncoderFrame(head []byte) bool {
	const syncAndLayer = 0xe6
	const layer3 = 0xe2
	if len(head) < 40 || head[1]&syncAndLayer != layer3 {
		return false
	}
	for _, at := range []int{13, 21, 36} {
		if name := string(head[at : at+4]); name == "Xing" || name == "Info" {
			return true
		}
	}
	return false
}

// framing is a format whose recordings consist of frames, each with a header of its own.
type framing struct {
	contentType string
	// sync are the bits that begin each header, as far as syncMask has ones.
	sync, syncMask uint64
	// same has ones for the bits that all headers of a recording have in common.
	same uint64
	// length returns the length of a frame in bytes, including its header, or 0 if it is invalid.
	length func(header uint64) int64
}

var framings = []framing{
	{"audio/mpeg", 0xffe0 << 48, 0xffe0 << 48, 0xfffe0c << 40, lengthOfMPEG},
	{"audio/aac", 0xfff0 << 48, 0xfff6 << 48, 0xfffffc << 40, lengthOfADTS},
	{"audio/mp4a-latm", 0x56e0 << 48, 0xffe0 << 48, 0xffe0 << 48, lengthOfLOAS},
}

// formatOfFrames returns the MIME type of the frames that begin at an offset, or "". One header says
// too little, because quiet PCM is full of bytes like it, so two more frames must follow.
func (c *content) formatOfFrames(at int64) string {
	for _, f := range framings {
		if c.hasFrames(f, at) {
			return f.contentType
		}
	}
	return ""
}

func (c *content) hasFrames(f framing, at int64) bool {
	var first uint64
	for i := range 3 {
		head := c.read(c.few[:8], at)
		if len(head) < 8 {
			return false
		}
		header := binary.BigEndian.Uint64(head)
		if i == 0 {
			first = header
		}
		length := f.length(header)
		if header&f.syncMask != f.sync || (header^first)&f.same != 0 || length == 0 {
			return false
		}
		at += length
	}
	return true
}

// lengthOfMPEG is for layers II and III of MPEG 1, 2 and 2.5. It does not know frames of a free
// bit rate, which do not say how long they are.
func lengthOfMPEG(header uint64) int64 {
	version := header >> 51 & 3
	layer := header >> 49 & 3
	bitRate := header >> 44 & 15
	sampleRate := header >> 42 & 3
	padding := int64(header >> 41 & 1)
	const (
		reserved = 1
		mpeg1    = 3
		layer2   = 2
		layer3   = 1
	)
	if version == reserved || layer != layer2 && layer != layer3 || sampleRate == 3 || bitRate == 15 {
		return 0
	}
	perSecond := [...]int64{44_100, 48_000, 32_000}[sampleRate]
	samples := int64(1152)
	kilobits := kilobitsOfMPEG1[layer-1]
	if version != mpeg1 {
		perSecond >>= 2 - version/2 // 1 for MPEG 2, 2 for MPEG 2.5
		kilobits = kilobitsOfMPEG2
		if layer == layer3 {
			samples = 576
		}
	}
	length := samples / 8 * int64(kilobits[bitRate]) * 1000 / perSecond
	if length == 0 {
		return 0
	}
	return length + padding
}

// The bit rates of layer III and layer II of MPEG 1, and of both in MPEG 2.
var (
	kilobitsOfMPEG1 = [2][15]int16{
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
	}
	kilobitsOfMPEG2 = [15]int16{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
)

func lengthOfADTS(header uint64) int64 {
	const shortest = 7 // a header without a checksum
	length := int64(header >> 21 & 0x1fff)
	sampleRate := header >> 42 & 15
	if length < shortest || sampleRate > 12 {
		return 0
	}
	return length
}

func lengthOfLOAS(header uint64) int64 {
	const prefix = 3
	return prefix + int64(header>>40&0x1fff)
}
