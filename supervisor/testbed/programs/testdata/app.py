"""A small web application. It keeps what it is sent in a store that refuses old tokens, and says 200 only when the store
has taken it. The serving process is forked off, as servers do; the first one only waits for it."""
import http.client
import http.server
import os
import signal
import sys

token = os.environ["UNDERSTUDY_TOKEN"]

serving = os.fork()
if serving:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(serving, 0)[1]))
os.setsid()

run = f"{token}.{os.getpid()}"
number = 0


def keep():
    """Writes the next entry; returns its name and the store's answer."""
    global number
    number += 1
    store = http.client.HTTPConnection(sys.argv[2], timeout=2)
    store.request("PUT", f"/{run}.{number}", b"entry", {"Token": token})
    code = store.getresponse().status
    store.close()
    return f"/{run}.{number}", code


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name, code = keep()
        self.send_response(200 if code == 204 else code)
        self.send_header("Content-Length", str(len(name)))
        self.end_headers()
        self.wfile.write(name.encode())

    def log_message(self, *_):
        pass


keep()  # from now on the store refuses whoever was active before
http.server.HTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
