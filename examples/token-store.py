#!/usr/bin/env python3
"""Keeps values for one service, and refuses the writes of earlier activations: PUT /NAME, with UNDERSTUDY_TOKEN in the header Token.
204: kept. 409: a later activation has written already, so the program that asks should end."""
import http.server, sqlite3, sys

db = sqlite3.connect(sys.argv[2], isolation_level=None)
db.execute("PRAGMA synchronous = FULL")  # what was answered outlasts a loss of power
db.execute("CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, token INTEGER, value BLOB)")


class Store(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        token, value = int(self.headers["Token"] or -1), self.rfile.read(int(self.headers["Content-Length"]))
        highest = db.execute("SELECT max(token) FROM kept").fetchone()[0] or 0
        if token >= highest:
            db.execute("REPLACE INTO kept VALUES (?, ?, ?)", (self.path, token, value))
        self.send_response(204 if token >= highest else 409)
        self.end_headers()


http.server.HTTPServer(("", int(sys.argv[1])), Store).serve_forever()  # one request after the other
