# Copy this file into the directory of your tests, with minutes-fake in your PATH. A test that needs control imports it from here.
import http.client, json, os, subprocess, urllib.parse, pytest

def control(what, body=None):
    method, path = what.split(" ", 1)
    base = urllib.parse.urlsplit(os.environ["MINUTES_CONTROL_URL"])
    connection = http.client.HTTPConnection(base.netloc)
    data = None if body is None else json.dumps(body)
    connection.request(method, base.path + path, data, {"Content-Type": "application/json", "Connection": "close"})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status < 300, text
    return json.loads(text or "null")

@pytest.fixture(scope="session")
def fake(): # if your client polls more often than every thirty seconds, add -min-poll-interval
    if "MINUTES_CONTROL_URL" in os.environ: # one program for all workers of pytest-xdist; otherwise each starts its own
        yield
        return
    command = ["minutes-fake", "-addr", "127.0.0.1:0", "-exit-on-eof", "-print-env", "-log", "none"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(3):
            name, _, value = process.stdout.readline().strip().partition("=")
            assert name, "minutes-fake did not start, and its message says why"
            os.environ[name] = value
        yield # the end of "with" closes stdin, and so does the end of this program, even if it is killed

@pytest.fixture(autouse=True)
def organisation(fake): # each test has an organisation of its own, so tests may share a fake and run at the same time
    program = os.environ["MINUTES_CONTROL_URL"]
    made = control("POST /organisations")
    os.environ.update(MINUTES_API_KEY=made["keys"][0], MINUTES_CONTROL_URL=made["control_url"])
    yield
    found = control("GET /violations")
    os.environ["MINUTES_CONTROL_URL"] = program
    control("DELETE /organisations/" + made["id"])
    assert not any(found.values()), json.dumps(found, indent=1)
