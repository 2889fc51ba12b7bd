package jobs_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func startRedis(t *testing.T) string {
	t.Helper()
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	startServer(t, addr, t.TempDir(), nil, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "")
	return addr
}

// startPostgres starts a server with an empty database, as the user postgres, because PostgreSQL
// does not run as root.
func startPostgres(t *testing.T) (address string) {
	t.Helper()
	var as *syscall.Credential
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("no user postgres")
		}
		uid, err := strconv.Atoi(account.Uid)
		require.NoError(t, err)
		gid, err := strconv.Atoi(account.Gid)
		require.NoError(t, err)
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		require.NoError(t, os.Chown(dir, uid, gid))
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // so that it gets there
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(program(t, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
	initdb.Dir = dir // it may not read ours
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, string(out))
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	startServer(t, addr, dir, as, "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off")
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// startServer runs a server until the test ends, and waits until it listens on addr.
func startServer(t *testing.T, addr, dir string, as *syscall.Credential, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, name), args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // PostgreSQL then ends its child processes
		_ = cmd.Wait()
	})
	for range 500 {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.Fail(t, name+" does not listen", output.String())
}

// program returns the path of a program, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	versions, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // Debian's, which are not in PATH
	require.NoError(t, err)
	for _, path := range append([]string{name}, versions...) {
		found, err := exec.LookPath(path)
		if err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed", name)
	return ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
