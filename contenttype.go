package minutes

import (
	"cmp"
	"io"
	"mime"
	"slices"
	"strings"
)

// The content type of a recording. The type that its first bytes show wins over its name and over a
// declared type that says nothing, because the service decides by the content type which recordings
// it processes.

// findContentType returns the declared type if it is one of audio or video. Otherwise it returns
// what the content shows, or else the type of the extension, or else a declared type of an
// application. Errors name param.
func findContentType(param, declared, ext string, audio io.ReaderAt, size int64) (string, error) {
	declared = usableType(declared)
	if isMedia(declared) {
		return declared, nil
	}
	ext = strings.ToLower(ext)
	found, err := sniff(param, ext, audio, size)
	if err != nil {
		return "", err
	}
	found = cmp.Or(found, typesByExtension[ext], declared)
	if found == "" {
		return "", formatError(param, ErrRecordingFormat.Error())
	}
	return found, nil
}

func formatError(param, reason string) error {
	return &ParamError{Param: param, Reason: reason, Err: ErrRecordingFormat}
}

// usableType returns a declared type without surrounding space, or "" if it says nothing about a
// recording. Without a part that is not a parameter, as in video/webm;codecs=vp8,opus, the type
// still says what the recording is, so only the parameters are dropped.
func usableType(declared string) string {
	declared = strings.TrimSpace(declared)
	bare, _, _ := strings.Cut(declared, ";")
	bare = strings.TrimSpace(bare)
	lower, _, err := mime.ParseMediaType(bare)
	kind, subtype, _ := strings.Cut(lower, "/")
	saysNothing := kind != "application" && !isMedia(lower) || slices.Contains(typesOfAnything, lower)
	if err != nil || subtype == "" || subtype == "*" || saysNothing {
		return ""
	}
	_, _, err = mime.ParseMediaType(declared)
	if err != nil || strings.ContainsFunc(declared, func(r rune) bool { return r < ' ' || r > '~' }) {
		return bare
	}
	return declared
}

// typesOfAnything are the types that programs declare if they do not know any.
var typesOfAnything = []string{"application/octet-stream", "application/x-www-form-urlencoded"}

// isMedia reports whether a MIME type is that of audio or video.
func isMedia(contentType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), "/")
	return kind == "audio" || kind == "video"
}

// sniff returns the MIME type that the content shows, or "" if its format is unknown. ext only
// decides between types whose files begin with the same bytes. Content that is certainly not a
// recording, such as a page that was saved as one, or not a whole one, is an error.
func sniff(param, ext string, audio io.ReaderAt, size int64) (string, error) {
	c := &content{audio: io.NewSectionReader(audio, 0, size)}
	found := c.format()
	problem := c.problem(found)
	switch {
	case c.err != nil:
		return "", c.err
	case problem != "":
		return "", formatError(param, "the content is "+problem)
	case slices.Contains(sameContainer[found], ext):
		return typesByExtension[ext], nil
	}
	return found, nil
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
