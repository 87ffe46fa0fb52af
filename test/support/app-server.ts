import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import express, { type Express } from 'express'
import type { Logger } from '../../lib/core/call/index.ts'

/** A small Express app on loopback. */
export interface AppServer {
  readonly url: string
  readonly port: number
  readonly server: Server
  close(): Promise<void>
}

/** Serves an app that `build` puts together. */
export async function serveApp(build: (app: Express) => void): Promise<AppServer> {
  const app = express()
  // Keeps Express from printing the errors that its own handler answers.
  app.set('env', 'test')
  build(app)
  const server = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A connection on which a test writes its own bytes. */
export interface RawClient {
  readonly socket: Socket
  /** Everything received so far. */
  readonly received: string
  /** Waits until `text` has been received. */
  until(text: string): Promise<void>
  /** Waits until the other side has closed; answers everything received. */
  end(): Promise<string>
}

/** Connects and writes `bytes`. */
export function rawClient(port: number, bytes = ''): RawClient {
  let received = ''
  const socket = connect(port, '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  socket.on('data', (chunk: string) => {
    received += chunk
  })
  socket.write(bytes, 'latin1')
  return {
    socket,
    get received() {
      return received
    },
    async until(text) {
      while (!received.includes(text)) {
        if (socket.destroyed) throw new Error(`closed before "${text}" came; received: ${received}`)
        await new Promise<void>((resolve) => {
          const done = () => {
            socket.off('data', done)
            socket.off('close', done)
            resolve()
          }
          socket.on('data', done)
          socket.on('close', done)
        })
      }
    },
    async end() {
      await closed
      return received
    },
  }
}

/** A line that a logger received. */
export interface LoggedLine {
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A logger that keeps the lines that it receives. */
export interface RecordingLogger extends Logger {
  readonly lines: LoggedLine[]
}

export function recordingLogger(): RecordingLogger {
  const lines: LoggedLine[] = []
  const log = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: fields as LoggedLine['fields'] })
  return { lines, info: log('info'), warn: log('warn'), error: log('error') }
}

/** Waits, event loop turn by turn, until `condition` holds. */
export async function eventually(condition: () => boolean, what = 'the condition'): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within 20 s`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
