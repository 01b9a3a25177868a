#!/usr/bin/python3
"""A worker that only knows "SIGUSR1 = go". It stands by with all that it needs, and opens its port when it is told to."""

import http.server
import os
import signal
import socket
import time

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # one that comes early waits
time.sleep(float(os.environ.get("LOADS_FOR", "0")))  # a real one loads its data now

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))
signal.sigwait([signal.SIGUSR1])


class Worker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["UNDERSTUDY_NODE"].encode())

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Worker).serve_forever()
