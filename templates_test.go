package minutes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

func TestTemplate_PrintsValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, "{ID:tpl_1 Name:Board Source: Description: IsDefault:false Version:3}", fmt.Sprint(minutes.Template{ID: "tpl_1", Name: "Board", Version: new(3)}))
}
