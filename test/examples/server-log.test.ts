import assert from 'node:assert/strict'
import { it } from 'node:test'
import { serverLog } from '../../examples/gateway/telemetry/server-log.ts'
import { recordingLogger } from '../support/app-server.ts'
import { until } from '../support/until.ts'

it('each outage of a server that goes away again has its own reason in the log', async (t) => {
  const logger = recordingLogger()
  let fault: Error | undefined
  let isClosed = false
  t.after(() => {
    isClosed = true
  })
  const log = serverLog({
    server: 'redis',
    effect: 'limits are counted by each process',
    // A user that counts the server as away does not ask it.
    ask: async () => {
      if (fault) throw new Error('redis limits is away')
    },
    isClosed: () => isClosed,
    logger,
  })
  const goes = async (away: boolean, lines: number) => {
    await until(() => logger.lines.length === lines, `${lines} lines`)
    assert.equal(logger.lines.at(-1)?.message, away ? 'store is away' : 'store is back')
  }
  const first = { err: new Error('OOM command not allowed'), store: 'redis limits' }
  fault = first.err
  log.error(first, 'store is away')
  await goes(true, 1)
  fault = undefined
  log.warn({ store: 'redis limits', forMs: 1 }, 'store is back')
  await goes(false, 2)
  const second = { err: new Error('READONLY'), reason: 'it is a replica', store: 'redis limits' }
  fault = second.err
  log.error(second, 'store is away')
  await goes(true, 3)
  assert.deepEqual(
    logger.lines.map(({ fields }) => [fields.err, fields.reason]),
    [
      [first.err, undefined],
      [undefined, undefined],
      [second.err, second.reason],
    ],
  )
})
