/**
 * The limit of what a Node relay can do, against which every other target is measured: `node:http` on one side, undici
 * on the other, nothing between them but the request body (buffered, as anything that may fail over has to) and the
 * response, passed on as it arrives with back-pressure. It looks at nothing that it relays.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Dispatcher } from 'undici'
import { Pool } from 'undici'

const pool = new Pool(process.env.UPSTREAM ?? '', { headersTimeout: 0, bodyTimeout: 0 })

/** Headers that belong to one connection, and those that undici writes itself. */
const OWN_TO_A_HOP = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding'])

function requestHeaders(raw: string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (!OWN_TO_A_HOP.has(name.toLowerCase())) kept.push(name, raw[i + 1] as string)
  }
  return kept
}

class Relaying implements Dispatcher.DispatchHandler {
  readonly res: ServerResponse
  controller: Dispatcher.DispatchController | null = null
  /** The bytes that arrived in this turn. One read often holds many chunks: as one write, they cost half as much. */
  arrived: Buffer[] = []

  constructor(res: ServerResponse) {
    this.res = res
    res.sendDate = false
    res.on('drain', () => this.controller?.resume())
    res.on('close', () => this.controller?.abort(new Error('caller gone')))
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    if (this.res.destroyed) controller.abort(new Error('caller gone'))
    else this.controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders) {
    delete headers.connection
    delete headers['keep-alive']
    delete headers['transfer-encoding']
    this.res.writeHead(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer) {
    if (this.arrived.push(chunk) === 1) process.nextTick(passOn, this)
  }

  onResponseEnd() {
    this.controller = null
    if (this.arrived.length > 0) this.res.end(this.takeArrived())
    else this.res.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error) {
    this.controller = null
    if (this.res.headersSent) this.res.destroy(error)
    else this.res.writeHead(502).end()
  }

  takeArrived(): Buffer {
    const { arrived } = this
    this.arrived = []
    return arrived.length === 1 ? (arrived[0] as Buffer) : Buffer.concat(arrived)
  }
}

function passOn(relaying: Relaying) {
  if (relaying.arrived.length === 0) return
  if (!relaying.res.write(relaying.takeArrived())) relaying.controller?.pause()
}

function relay(req: IncomingMessage, res: ServerResponse) {
  const received: Buffer[] = []
  req.on('data', (chunk: Buffer) => received.push(chunk))
  req.on('end', () => {
    const body = received.length === 1 ? (received[0] as Buffer) : Buffer.concat(received)
    pool.dispatch(
      { path: req.url ?? '/', method: req.method ?? 'GET', headers: requestHeaders(req.rawHeaders), body },
      new Relaying(res),
    )
  })
}

const server = createServer(relay)
server.keepAliveTimeout = 120_000
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4096, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
