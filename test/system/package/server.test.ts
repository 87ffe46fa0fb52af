import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, lookUp, post } from '../../support/gateway-process.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { startRedis } from '../../support/redis-server.ts'
import { Consumer } from './consumer.ts'
import { manifestOf } from './packages.ts'

const COMMAND = 'express-model-gateway-server'

const cleanUp = cleaningUp()
const project = new Consumer(['toolkit', 'server'])
cleanUp.after(() => project.remove())

test('both packages, installed: the command serves with Postgres, Redis, /metrics and the demo’s WebSockets', async () => {
  const postgres = await startPostgres()
  cleanUp.after(() => postgres.close())
  const redis = await startRedis()
  cleanUp.after(() => redis.close())
  const DATABASE_URL = await postgres.createDatabase()
  const env = { DATABASE_URL, REDIS_URL: `redis://127.0.0.1:${redis.port}`, WORKERS: '2' }
  const gateway = await project.start(COMMAND, [], env)
  cleanUp.after(() => gateway.stop())

  const answer = await post(gateway.url, chat())
  assert.equal(answer.status, 200)
  await lookUp(gateway.url, answer.headers.get('x-request-id'))
  assert.equal((await jsonOf<{ status: string }>(await fetch(`${gateway.url}/readyz`))).status, 'ready')

  const charges = await postgres.query("select * from accounts where id = 'demo'", DATABASE_URL)
  assert.equal(charges.length, 1)
  assert.ok((await redis.client().dbsize()) > 0, 'no limit was counted in Redis')
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  assert.match(metrics, /^model_gateway_worker_answered\{worker="[12]"\} 1$/m)
  assert.match(metrics, /^model_gateway_calls_total\{/m)

  const url = `${gateway.url.replace('http', 'ws')}/v1/realtime?model=demo-realtime`
  const socket = new WebSocket(url, { headers: { authorization: 'Bearer sk-demo' } })
  await once(socket, 'open')
  socket.terminate()

  gateway.kill('SIGTERM')
  const { code, stderr } = await gateway.exited
  assert.deepEqual([code, stderr], [0, ''])
})

test('it is the command of the toolkit of the same version', async () => {
  const { code, stdout } = await project.run(COMMAND, ['--version'])
  assert.deepEqual([code, stdout], [0, `${manifestOf('server').version}\n`])
})
