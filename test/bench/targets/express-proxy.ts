/** The features of http-proxy-middleware in an Express app: no limits, no metering, one upstream, no failover. */
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'

const app = express()
app.disable('x-powered-by')
app.use(
  createProxyMiddleware({
    target: process.env.UPSTREAM ?? '',
    changeOrigin: true,
    agent: new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY }),
  }),
)

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4096, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
server.keepAliveTimeout = 120_000
