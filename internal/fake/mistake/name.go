package mistake

import (
	"cmp"
	"strings"
)

// Name is what JSON and Go call the same thing, such as a field or a kind of fault.
type Name struct{ JSON, Go string }

// initialisms are the words of names that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "ip": "IP", "api": "API", "url": "URL", "html": "HTML"}

// Field returns the names of a field by that of JSON, such as member_id and MemberID.
func Field(inJSON string) Name {
	var inGo strings.Builder
	for word := range strings.SplitSeq(inJSON, "_") {
		inGo.WriteString(cmp.Or(initialisms[word], strings.ToUpper(word[:1])+word[1:]))
	}
	return Name{inJSON, inGo.String()}
}

// Operation returns the names of an operation by that of JSON, such as meetings.get and
// minutes.OpMeetingsGet.
func Operation(inJSON string) Name {
	if inJSON == "storage.put" {
		return Name{inJSON, "minutes.OpUpload"}
	}
	return Name{inJSON, "minutes.Op" + Field(strings.ReplaceAll(inJSON, ".", "_")).Go}
}

// List returns the names of a list of things.
func List(separator string, names ...Name) Name {
	var inJSON, inGo []string
	for _, name := range names {
		inJSON = append(inJSON, name.JSON)
		inGo = append(inGo, name.Go)
	}
	return Name{strings.Join(inJSON, separator), strings.Join(inGo, separator)}
}
