package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// removeEnvFile takes away the file of an earlier run, so that its presence says
// that this program is ready.
func removeEnvFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-env-file %s: %w", path, err)
	}
	return nil
}

// writeEnvFile writes the variables all at once, for its owner only: they hold
// a key.
func writeEnvFile(path string, env []string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".minutes-fake-*")
	if err != nil {
		return fmt.Errorf("-env-file %s: %w", path, err)
	}
	_, err = file.WriteString(strings.Join(env, "\n") + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("-env-file %s: %w", path, err)
	}
	return nil
}
