#!/usr/bin/python3
"""A server that is there before it is needed: while it stands by it answers 503, from POST /activate to POST /idle what it is for."""

import http.server
import os
import time

time.sleep(float(os.environ.get("LOADS_FOR", "0")))  # a real one loads its data now, and opens its connections

serves = os.environ.get("UNDERSTUDY_ROLE") != "follower"  # so it is as well without Understudy


class Server(http.server.BaseHTTPRequestHandler):
    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        global serves
        orders = {"/activate": True, "/idle": False}
        if self.client_address[0] != "127.0.0.1" or self.path not in orders:  # anybody could activate it otherwise
            return self.answer(403)
        serves = orders[self.path]  # a real one also waits here, on /idle, until its last write is done
        self.answer(204)

    def do_GET(self):
        if self.path == "/healthz":  # both those that serve and those that stand by are well
            return self.answer(200, "ok")
        self.answer(200, os.environ.get("UNDERSTUDY_NODE", "")) if serves else self.answer(503)

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Server).serve_forever()
