package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValue_ShowsOnlyItsText(t *testing.T) {
	t.Parallel()
	type holder struct {
		Exported Value[string]
		hidden   Value[string]
		pointer  *Value[map[string]string]
	}
	value, held := Hide(key, "***"), Hide(map[string]string{"key": key}, "***")
	for _, v := range []any{value, &value, held, holder{value, value, &held}, &holder{value, value, &held}, []Value[string]{value}} {
		var b strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&b, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&b, nil)).Info("value", "v", v)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("value", "v", v)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		shown := b.String() + string(text)
		assert.Contains(t, shown, "***", "%T", v)
		assert.Equal(t, shown, Mask{key, fmt.Sprintf("%x", key)}.Text(shown), "%T", v)
	}
	assert.NotContains(t, fmt.Sprint(reachable(reflect.ValueOf(holder{value, value, &held}))), key)
}

// reachable lists the strings that reflection reads without calling anything.
func reachable(v reflect.Value) (all []string) {
	switch v.Kind() {
	case reflect.String:
		all = append(all, v.String())
	case reflect.Pointer:
		all = append(all, reachable(v.Elem())...)
	case reflect.Struct:
		for _, field := range v.Fields() {
			all = append(all, reachable(field)...)
		}
	}
	return all
}

func TestValue_RevealsWhatItHides(t *testing.T) {
	t.Parallel()
	assert.Equal(t, key, Hide(key, "***").Reveal())
	var zero Value[string]
	assert.Empty(t, zero.Reveal())
	assert.Empty(t, fmt.Sprint(zero))
}
