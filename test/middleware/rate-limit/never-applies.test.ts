import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordingLogger } from '../../support/app-server.ts'
import { shop } from './shop-app.ts'

describe('a limit that never applies', () => {
  it('is logged once at the first request where no caller is authenticated', async (t) => {
    const logger = recordingLogger()
    const app = await shop(t, { logger })
    for (let i = 0; i < 3; i++) assert.equal((await app.ask()).status, 200)
    assert.deepEqual(
      logger.lines.map(({ level, message }) => [level, message]),
      [
        [
          'warn',
          'rateLimit: nothing is limited; nobody is authenticated: mount authenticate before it, or give "levels"',
        ],
      ],
    )
  })

  it('is logged once after a hundred requests where own levels have none', async (t) => {
    const logger = recordingLogger()
    const app = await shop(t, { logger, levels: [{ name: 'user', by: () => undefined, rpm: 1 }] })
    for (let i = 0; i < 99; i++) await app.ask()
    assert.deepEqual(logger.lines, [])
    for (let i = 0; i < 102; i++) await app.ask()
    assert.equal(logger.lines.length, 1)
    assert.match(
      String(logger.lines.map(({ message }) => message)),
      /^rateLimit: nothing is limited; no level has applied .* "by"/,
    )
  })

  it('is logged once after a hundred requests where only tokens are limited, and they are not counted', async (t) => {
    const logger = recordingLogger()
    const app = await shop(t, { logger, levels: [{ name: 'all', by: () => 'all', tpm: 1 }] })
    for (let i = 0; i < 99; i++) await app.ask()
    assert.deepEqual(logger.lines, [])
    for (let i = 0; i < 102; i++) assert.equal((await app.ask()).status, 200)
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      [
        'rateLimit: nothing is limited; no tokens were known of the first 100 requests: mount readRequest before it, or give "tokens"',
      ],
    )
  })

  it('is not logged where tokens are counted', async (t) => {
    const logger = recordingLogger()
    const app = await shop(t, {
      logger,
      tokens: () => 1,
      levels: [{ name: 'all', by: () => 'all', tpm: 200 }],
    })
    for (let i = 0; i < 120; i++) await app.ask()
    assert.deepEqual(logger.lines, [])
  })

  it('is not logged where a level has applied before', async (t) => {
    const logger = recordingLogger()
    const app = await shop(t, { logger, levels: [{ name: 'user', by: (req) => req.get('x-user'), rpm: 9 }] })
    await app.ask({ 'x-user': 'ann' })
    for (let i = 0; i < 120; i++) await app.ask()
    assert.deepEqual(logger.lines, [])
  })
})
