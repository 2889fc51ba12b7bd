package minutes

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// The content type of a recording. The type that its first bytes show wins over its name and over a
// declared type that says nothing, because the service decides by the content type which recordings
// it processes.

func checkContentType(param, contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	// In a header, it loses surrounding space, which breaks the signature, and must not have
	// control characters.
	unchanged := strings.TrimSpace(contentType) == contentType && !strings.ContainsFunc(contentType, unicode.IsControl)
	return checkThat(param, err == nil && unchanged && strings.Contains(kind, "/"), "is not a MIME type")
}

// completeContentType returns declared if it is a type of audio or video, and otherwise what the
// content shows. If the content shows none, it returns declared.
func completeContentType(declared string, audio io.ReaderAt) (string, error) {
	const param = "recording.ContentType"
	if declared == "" {
		return findContentType(param, audio, "")
	}
	err := checkContentType(param, declared)
	if err != nil || isMedia(declared) {
		return declared, err
	}
	found, err := sniff(param, audio, "")
	if found == "" {
		found = declared
	}
	return found, err
}

// isMedia reports whether a MIME type is that of audio or video. All others say nothing about a
// recording, such as application/octet-stream, or the types of a form.
func isMedia(contentType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), "/")
	return kind == "audio" || kind == "video"
}

// findContentType returns the type of the content, or else that of the extension. Errors name param.
func findContentType(param string, audio io.ReaderAt, ext string) (string, error) {
	ext = strings.ToLower(ext)
	found, err := sniff(param, audio, ext)
	if err != nil {
		return "", err
	}
	if found == "" {
		found = typesByExtension[ext]
	}
	if found == "" {
		return "", &ParamError{Param: param, Reason: ErrRecordingFormat.Error(), Err: ErrRecordingFormat}
	}
	return found, nil
}

// sniff returns the MIME type that the first bytes show, or "" if they are unknown. ext only
// decides between types whose files begin with the same bytes. Content that is certainly not a
// recording, such as a page that was saved as one, is an error.
func sniff(param string, audio io.ReaderAt, ext string) (string, error) {
	head, err := readHead(audio, 0)
	if err != nil {
		return "", err
	}
	found := formatOf(head)
	if found == "audio/mpeg" && strings.HasPrefix(head, "ID3") { // a tag, which FLAC and AAC may have as well
		head, err = readHead(audio, endOfTag(head))
		if err != nil {
			return "", err
		}
		if behind := formatOf(head); behind != "" {
			found = behind
		}
	}
	switch {
	case slices.Contains(sameContainer[found], ext):
		return typesByExtension[ext], nil
	case found != "":
		return found, nil
	}
	kind, _, _ := strings.Cut(http.DetectContentType([]byte(head)), ";")
	if kind == "application/octet-stream" || isMedia(kind) {
		return "", nil
	}
	reason := "the content is " + kind + ", not a recording"
	return "", &ParamError{Param: param, Reason: reason, Err: ErrRecordingFormat}
}

// readHead returns the bytes at an offset, as many as http.DetectContentType considers.
func readHead(audio io.ReaderAt, at int64) (string, error) {
	head := make([]byte, 512)
	n, err := audio.ReadAt(head, at)
	if err != nil && err != io.EOF {
		return "", err
	}
	return string(head[:n]), nil
}

// endOfTag returns the length of an ID3 tag: ten bytes, and a number of seven bits a byte.
func endOfTag(head string) int64 {
	if len(head) < 10 {
		return 0
	}
	size := int64(0)
	for i := 6; i < 10; i++ {
		size = size<<7 | int64(head[i]&0x7f)
	}
	return 10 + size
}

// formatOf returns the MIME type of the first format that head matches, or "".
func formatOf(head string) string {
	for _, f := range formats {
		if beginsLike(head, f.begins) && strings.Contains(head, f.contains) {
			return f.contentType
		}
	}
	return ""
}

// beginsLike reports whether s begins with pattern, in which ? stands for any byte.
func beginsLike(s, pattern string) bool {
	if len(s) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != s[i] {
			return false
		}
	}
	return true
}

// formats lists how recordings begin. The first match counts.
var formats = []struct {
	// begins is how the content begins; ? stands for any byte.
	begins string
	// contains is in the first 512 bytes.
	contains    string
	contentType string
}{
	{"RIFF????WAVE", "", "audio/wav"},
	{"RF64????WAVE", "", "audio/wav"}, // longer than 4 GiB, but field recorders use it for all
	{"BW64????WAVE", "", "audio/wav"},
	{"RIFX????WAVE", "", "audio/wav"},
	{"riff\x2e\x91\xcf\x11", "", "audio/x-w64"}, // Sony Wave64
	{"FORM????AIFF", "", "audio/aiff"},
	{"FORM????AIFC", "", "audio/aiff"},
	{".snd", "", "audio/basic"}, // AU
	{"caff", "", "audio/x-caf"}, // Core Audio: iMessage, recorders of iOS and macOS
	{"fLaC", "", "audio/flac"},
	{"OggS", "\x80theora", "video/ogg"},
	{"OggS", "", "audio/ogg"},
	{"#!AMR-WB", "", "audio/amr-wb"},
	{"#!AMR", "", "audio/amr"},
	{"#!SILK", "", "audio/silk"}, // voice messages of Tencent's messengers
	{"\x02#!SILK", "", "audio/silk"},
	{"\x02dss", "", "audio/x-dss"}, // dictation machines
	{"\x03dss", "", "audio/x-dss"},
	{"\x03ds2", "", "audio/x-ds2"},

	// The brand of an MP4 file. Only some brands show whether it has pictures.
	{"????ftypM4A", "", "audio/mp4"},
	{"????ftypM4B", "", "audio/mp4"},
	{"????ftypM4P", "", "audio/mp4"},
	{"????ftypF4A", "", "audio/mp4"},
	{"????ftypF4B", "", "audio/mp4"},
	{"????ftyp3gp", "", "video/3gpp"},
	{"????ftyp3ge", "", "video/3gpp"},
	{"????ftyp3gr", "", "video/3gpp"},
	{"????ftyp3gs", "", "video/3gpp"},
	{"????ftyp3g2", "", "video/3gpp2"},
	{"????ftypqt", "", "video/quicktime"},
	{"????ftyp", "", "video/mp4"},
	{"????styp", "", "video/mp4"}, // a segment of a stream
	{"????moov", "", "video/quicktime"},
	{"????mdat", "", "video/quicktime"},
	{"????wide", "", "video/quicktime"},

	{"\x1a\x45\xdf\xa3", "matroska", "video/x-matroska"},
	{"\x1a\x45\xdf\xa3", "", "video/webm"},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "", "video/x-ms-asf"}, // Windows Media, also without pictures
	{"RIFF????AVI ", "", "video/avi"},
	{"FLV\x01", "", "video/x-flv"},
	{"\x00\x00\x01\xba", "", "video/mpeg"}, // program stream
	{"\x00\x00\x01\xb3", "", "video/mpeg"},
	{transportStream(188), "", "video/mp2t"},
	{"????" + transportStream(192), "", "video/mp2t"}, // of camcorders, with a time before each packet

	{"ID3", "", "audio/mpeg"},
	{"ADIF", "", "audio/aac"},
	{"\xff\xf0", "", "audio/aac"}, // the first bytes of a frame: ADTS of MPEG 4 and 2, with and without a checksum
	{"\xff\xf1", "", "audio/aac"},
	{"\xff\xf8", "", "audio/aac"},
	{"\xff\xf9", "", "audio/aac"},
	{"\xff\xfa", "", "audio/mpeg"}, // layer III of MPEG 1, 2 and 2.5
	{"\xff\xfb", "", "audio/mpeg"},
	{"\xff\xf2", "", "audio/mpeg"},
	{"\xff\xf3", "", "audio/mpeg"},
	{"\xff\xe2", "", "audio/mpeg"},
	{"\xff\xe3", "", "audio/mpeg"},
	{"\xff\xfc", "", "audio/mpeg"}, // layer II of MPEG 1 and 2
	{"\xff\xfd", "", "audio/mpeg"},
	{"\xff\xf4", "", "audio/mpeg"},
	{"\xff\xf5", "", "audio/mpeg"},
}

// transportStream returns how an MPEG transport stream begins: each packet begins with G.
func transportStream(packet int) string {
	next := strings.Repeat("?", packet-1) + "G"
	return "G" + next + next
}

// sameContainer lists the extensions of other types whose files begin with the same bytes.
var sameContainer = map[string][]string{
	"video/mp4":        {".m4a", ".m4b", ".m4r", ".m4v", ".mov", ".3gp", ".3ga", ".3g2"},
	"video/3gpp":       {".m4a", ".3ga"},
	"video/webm":       {".weba"},
	"video/x-matroska": {".mka"},
	"video/x-ms-asf":   {".wma", ".wmv"},
}

var typesByExtension = map[string]string{
	".3g2":  "video/3gpp2",
	".3ga":  "audio/3gpp",
	".3gp":  "video/3gpp",
	".aac":  "audio/aac",
	".aif":  "audio/aiff",
	".aifc": "audio/aiff",
	".aiff": "audio/aiff",
	".amr":  "audio/amr",
	".asf":  "video/x-ms-asf",
	".au":   "audio/basic",
	".avi":  "video/avi",
	".awb":  "audio/amr-wb",
	".bwf":  "audio/wav",
	".caf":  "audio/x-caf",
	".ds2":  "audio/x-ds2",
	".dss":  "audio/x-dss",
	".flac": "audio/flac",
	".flv":  "video/x-flv",
	".m2ts": "video/mp2t",
	".m4a":  "audio/mp4",
	".m4b":  "audio/mp4",
	".m4r":  "audio/mp4",
	".m4v":  "video/mp4",
	".mka":  "audio/x-matroska",
	".mkv":  "video/x-matroska",
	".mov":  "video/quicktime",
	".mp2":  "audio/mpeg",
	".mp3":  "audio/mpeg",
	".mp4":  "video/mp4",
	".mpeg": "video/mpeg",
	".mpg":  "video/mpeg",
	".mts":  "video/mp2t",
	".oga":  "audio/ogg",
	".ogg":  "audio/ogg",
	".ogv":  "video/ogg",
	".opus": "audio/ogg",
	".snd":  "audio/basic",
	".ts":   "video/mp2t",
	".w64":  "audio/x-w64",
	".wav":  "audio/wav",
	".wave": "audio/wav",
	".weba": "audio/webm",
	".webm": "video/webm",
	".wma":  "audio/x-ms-wma",
	".wmv":  "video/x-ms-wmv",
}
