package engine

import (
	"net/mail"
	"regexp"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
)

func (o *organisation) listMembers() any {
	list := []memberJSON{}
	for _, m := range o.memberOrder {
		list = append(list, m.json())
	}
	return map[string]any{"members": list}
}

// createMember adds a member without an account.
func (c *call) createMember() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	m := &Member{Status: minutes.MemberNoAccount}
	m.Name, _ = f.trimmed("name", maxMemberName, true)
	if m.Email, _ = f.text("email"); m.Email != "" && !validEmail(m.Email) {
		f.fault("email", errEmail)
	}
	m.Role, _ = f.trimmed("role", maxMemberRole, false)
	m.Description, _ = f.trimmed("description", maxDescription, false)
	if err := f.err(); err != nil {
		return nil, err
	}

	o := c.org
	o.lock(c.now)
	defer o.unlock()
	if holder := o.emails[foldEmail(m.Email)]; holder != nil { // before the limit (D18)
		return nil, errEmailTaken.with(holderDetails{holder.ID, holder.Name})
	}
	if len(o.memberOrder) >= o.maxMembers {
		return nil, errMemberLimit
	}
	for m.ID == "" || o.members[m.ID] != nil || o.integrations[m.ID] != nil {
		m.ID = o.world.ids.next(memberPrefix)
	}
	o.members[m.ID] = m
	o.memberOrder = append(o.memberOrder, m)
	if m.Email != "" {
		o.emails[foldEmail(m.Email)] = m
	}
	return m.json(), nil
}

// domainLabel matches the characters of a label, those beyond ASCII included.
var domainLabel = regexp.MustCompile(`^[a-zA-Z0-9\x{80}-\x{10FFFF}-]+$`)

// validEmail accepts a bare address only. net/mail alone would also accept
// display names, comments and route syntax.
func validEmail(s string) bool {
	addr, err := mail.ParseAddress(s)
	if err != nil || addr.Name != "" || addr.Address != s || len(s) > 254 {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	if at > 64 {
		return false
	}
	for label := range strings.SplitSeq(s[at+1:], ".") {
		if !domainLabel.MatchString(label) || len(label) > 63 || strings.Trim(label, "-") != label {
			return false
		}
	}
	return true
}

// foldEmail returns the form in which addresses are compared (D16).
func foldEmail(s string) string { return strings.ToLower(s) }
