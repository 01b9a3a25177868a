#!/usr/bin/python3
"""A server that keeps numbers in SQLite: PUT /NUMBER adds one, GET / returns them in the order in which they came."""

import http.server
import sqlite3
import sys
import threading

one = threading.Lock()  # at a time
db = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
db.execute("PRAGMA journal_mode = wal")
db.execute("PRAGMA busy_timeout = 5000")


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text=""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        with one:
            db.execute("INSERT INTO numbers (n) VALUES (?)", (int(self.path[1:]),))
        self.answer(204)

    def do_GET(self):
        with one:
            numbers = db.execute("SELECT n FROM numbers ORDER BY at").fetchall()
        self.answer(200, "\n".join(str(n) for (n,) in numbers))

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Server).serve_forever()
