"""The daemon's API: HTTP and JSON under `/v1`, made to be read with `curl --unix-socket` too."""
