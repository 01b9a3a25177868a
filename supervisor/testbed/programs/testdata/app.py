"""A small web application. It keeps what it is sent in a store that refuses old tokens, and says "kept" only when the store
has taken it. The serving process is forked off, as servers do; the first one only waits for it."""
import http.server
import os
import signal
import socket
import sys

host, port = sys.argv[2].rsplit(":", 1)
service, token = os.environ["UNDERSTUDY_SERVICE"], os.environ["UNDERSTUDY_TOKEN"]

serving = os.fork()
if serving:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(serving, 0)[1]))
os.setsid()

run = f"{token}.{os.getpid()}"
store = socket.create_connection((host, int(port)), timeout=2).makefile("rw", newline="\n")
number = 0


def keep():
    """Writes the next entry; returns the store's verdict."""
    global number
    number += 1
    store.write(f"{service} {token} {run} {number}\n")
    store.flush()
    return store.readline().strip()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        verdict = keep()
        answer = f"{verdict} {run} {number}\n".encode()
        self.send_response(200 if verdict == "taken" else 409)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


keep()  # from now on the store refuses whoever was active before
http.server.HTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
