import 'reflect-metadata'
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { Body, Controller, Get, HttpCode, type INestApplication, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express, { type RequestHandler } from 'express'
import { authenticate, idempotency, memoryKeyDirectory, rateLimit } from 'express-model-gateway'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'

let placed = 0

class Orders {
  list(): object {
    return { placed }
  }
  place(order: unknown): object {
    placed++
    return { order }
  }
}

// Does the work of TypeScript's decorators, which Node's type stripping does not know.
function decorate(method: 'list' | 'place', ...decorators: MethodDecorator[]): void {
  const property = Object.getOwnPropertyDescriptor(Orders.prototype, method) as PropertyDescriptor
  for (const decorator of decorators) decorator(Orders.prototype, method, property)
}
decorate('list', Get('orders'))
decorate('place', Post('orders'), HttpCode(201))
Body()(Orders.prototype, 'place', 0)
Controller()(Orders)

const cleanUp = cleaningUp()
/** The messages that Nest has logged as faults of the app. */
const faults: string[] = []
const logger = {
  log() {},
  warn() {},
  error: (...given: unknown[]) => void faults.push(given.map(String).join(' ')),
}

/** A NestJS app on Express with middlewares of ours, without `errorEnvelope`: Nest's BaseExceptionFilter answers. */
async function nest(...handlers: RequestHandler[]): Promise<string> {
  class Shop {}
  Module({ controllers: [Orders] })(Shop)
  const app: INestApplication<Server> = await NestFactory.create(Shop, { logger })
  for (const handler of handlers) app.use(handler)
  await app.listen(0, '127.0.0.1')
  cleanUp.after(() => app.close())
  return `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`
}

describe('NestJS on Express', () => {
  it('answers a refusal with its own status and message, and lets the rest through', async () => {
    const url = await nest(rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 2 }] }))
    assert.equal((await fetch(`${url}/orders`)).status, 200)
    assert.equal((await fetch(`${url}/none`)).status, 404)
    const refused = await fetch(`${url}/orders`)
    assert.equal(refused.status, 429)
    const { statusCode, message } = await jsonOf<{ statusCode: number; message: string }>(refused)
    assert.equal(statusCode, 429)
    assert.match(message, /rate limit/i)
    assert.ok(Number(refused.headers.get('retry-after')) > 1)
    assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0')
  })

  it('answers 401 of authenticate', async () => {
    const keys = memoryKeyDirectory({
      accounts: [{ id: 'acme' }],
      keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }],
    })
    const url = await nest(authenticate({ keys }))
    assert.equal((await fetch(`${url}/orders`)).status, 401)
    assert.equal((await fetch(`${url}/orders`, { headers: { 'x-api-key': 'sk-1' } })).status, 200)
  })

  it('runs a controller once per Idempotency-Key, behind a parser: Nest mounts its own after every app.use', async () => {
    placed = 0
    const url = await nest(express.json(), idempotency())
    const place = (item: string): Promise<Response> =>
      fetch(`${url}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'order-1' },
        body: JSON.stringify({ item }),
      })
    const first = await place('pen')
    assert.deepEqual([first.status, await first.json()], [201, { order: { item: 'pen' } }])
    assert.equal((await place('pen')).status, 409)
    assert.equal((await place('ink')).status, 400)
    assert.equal(placed, 1)
  })

  it('says that a parser is missing, as the operator’s fault', async () => {
    placed = 0
    const url = await nest(idempotency())
    const res = await fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'order-1' },
      body: '{}',
    })
    assert.equal(res.status, 500)
    assert.equal(placed, 0)
    assert.ok(faults.some((text) => /idempotency: .*mount the parser, such as express\.json\(\)/.test(text)))
  })
})
