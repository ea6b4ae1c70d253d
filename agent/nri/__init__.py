"""A plug-in of the Node Resource Interface (NRI), through which container runtimes ask plug-ins.

`frames` splits the one socket into connections and messages of ttrpc, `protobuf` reads and writes
messages by a schema, `messages` is that schema, `session` is the conversation without I/O, `link`
keeps it going over a unix socket.
Nothing here knows the agent: it could be a library of its own.
"""
