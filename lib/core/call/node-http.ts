/**
 * The classes and tables of `node:http`. An ES import of it would read all its members, and so load the WebSocket of
 * Node, which takes longer than loading a middleware.
 */
export const http = process.getBuiltinModule('node:http')
