package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// banner prints the addresses of the service and the keys that it accepts.
func banner(w io.Writer, world minutestest.World, env []string, baseURL, controlURL string) {
	fmt.Fprintf(w, "The Meeting Minutes Service, in memory.\n\n  service  %s\n", baseURL)
	if controlURL != "" {
		fmt.Fprintf(w, "  control  %s  (a page, in a browser)\n", controlURL)
	}
	for i := range world.Organisations {
		o := &world.Organisations[i]
		fmt.Fprintf(w, "\nKeys of %s\n\n", cmp.Or(o.Name, o.ID))
		for _, k := range o.Keys {
			name := k.MemberID + k.IntegrationID
			if m := o.Member(k.MemberID); m != nil {
				name = cmp.Or(m.Name, m.ID)
			}
			fmt.Fprintf(w, "  %-9s %s\n", k.Secret, name)
		}
	}
	fmt.Fprintf(w, "\nexport %s\n", strings.Join(env, " "))
}

// environment is what a client needs to know, as a shell takes it; key is the
// one to begin with, if there is one.
func environment(world minutestest.World, key, baseURL, controlURL string) []string {
	for i := range world.Organisations {
		for _, k := range world.Organisations[i].Keys {
			if key == "" && !k.Revoked && k.ExpiresAt == 0 {
				key = k.Secret
			}
		}
	}
	env := []string{"MINUTES_BASE_URL=" + quote(baseURL), "MINUTES_API_KEY=" + quote(key)}
	if controlURL != "" {
		env = append(env, "MINUTES_CONTROL_URL="+quote(controlURL))
	}
	return env
}

// quote makes s one word for a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
