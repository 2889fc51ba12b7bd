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
	for _, o := range world.Organisations {
		fmt.Fprintf(w, "\nKeys of %s\n\n", cmp.Or(o.Name, o.ID))
		for _, k := range o.Keys {
			fmt.Fprintf(w, "  %-9s %s\n", k.Secret, k.MemberID+k.IntegrationID)
		}
	}
	fmt.Fprintf(w, "\nexport %s\n", strings.Join(env, " "))
}

// environment returns what a client needs to know, as a shell takes it.
func environment(key, baseURL, controlURL string) []string {
	env := []string{"MINUTES_BASE_URL=" + baseURL, "MINUTES_API_KEY=" + key}
	if controlURL != "" {
		env = append(env, "MINUTES_CONTROL_URL="+controlURL)
	}
	return env
}
