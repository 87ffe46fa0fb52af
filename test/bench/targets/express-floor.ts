/**
 * The floor of any gateway in Express that reads what it relays: an Express app with one route, the request parsed once,
 * undici's `dispatch()` as in `relay`, a plain answer parsed once, four headers. No key, no limit, no log, no failover.
 */

import type { AddressInfo } from 'node:net'
import express, { type Request, type Response } from 'express'
import { type Dispatcher, Pool } from 'undici'
import { PATH } from '../workload.ts'

const pool = new Pool(process.env.UPSTREAM ?? '', { headersTimeout: 0, bodyTimeout: 0 })
let calls = 0

class Reading implements Dispatcher.DispatchHandler {
  readonly res: Response
  readonly streamed: boolean
  readonly chunks: Buffer[] = []

  constructor(res: Response, streamed: boolean) {
    this.res = res
    this.streamed = streamed
  }

  onRequestStart() {}

  onResponseStart() {
    if (this.streamed) this.res.writeHead(200, { 'content-type': 'text/event-stream' })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer) {
    if (!this.streamed) this.chunks.push(chunk)
    else if (!this.res.write(chunk)) {
      controller.pause()
      this.res.once('drain', () => controller.resume())
    }
  }

  onResponseEnd() {
    if (this.streamed) {
      this.res.end()
      return
    }
    const body = Buffer.concat(this.chunks)
    JSON.parse(body.toString())
    this.res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    this.res.end(body)
  }

  onResponseError() {
    this.res.destroy()
  }
}

const app = express()
app.disable('x-powered-by')
app.post(PATH, (req: Request, res: Response) => {
  const received: Buffer[] = []
  req.on('data', (chunk: Buffer) => received.push(chunk))
  req.on('end', () => {
    const body = Buffer.concat(received)
    const { stream } = JSON.parse(body.toString()) as { stream?: boolean }
    res.setHeader('x-request-id', `req_${++calls}`)
    pool.dispatch(
      { path: PATH, method: 'POST', headers: { 'content-type': 'application/json' }, body },
      new Reading(res, stream === true),
    )
  })
})
const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening ${(server.address() as AddressInfo).port}`)
})
