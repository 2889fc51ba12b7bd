package minutes_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestTemplatesOnTheWire(t *testing.T) {
	t.Parallel()
	onTheWire(t, "templates", 1)
}

func TestTemplatePrintsValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, "{ID:tpl_1 Name:Board Source: Description: IsDefault:false Version:3}", fmt.Sprint(minutes.Template{ID: "tpl_1", Name: "Board", Version: new(3)}))
}

func ExampleTemplatesService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	templates, err := client.Templates.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range templates {
		fmt.Println(t.ID, t.Name, t.IsDefault)
	}
	// Output:
	// tpl_standard Standard minutes true
	// tpl_decisions Decisions only false
}
