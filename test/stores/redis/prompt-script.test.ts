import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Command } from 'ioredis'
import { promptScript } from '../../../lib/stores/redis/redis-script.ts'

const LUA = 'return ARGV[1]'
const SHA = createHash('sha1').update(LUA).digest('hex')

type Client = Parameters<typeof promptScript>[0]

/** A script on a client that notes its commands, and answers as it is told. */
function scripted(answer: (name: string) => unknown, keyPrefix?: string) {
  const sent: unknown[][] = []
  const redis = {
    options: { keyPrefix },
    async sendCommand(command: Command) {
      sent.push([command.name, ...command.args])
      return answer(command.name)
    },
  } as unknown as Client
  return { sent, run: promptScript(redis, LUA) }
}

describe('a script of Redis', () => {
  it('is sent with its first call, and named by its digest from then on', async () => {
    const { sent, run } = scripted((name) => name)
    assert.deepEqual([await run(['k'], [7]), await run(['k', 'l'], ['a'])], ['eval', 'evalsha'])
    assert.deepEqual(sent, [
      ['eval', LUA, '1', 'k', '7'],
      ['evalsha', SHA, '2', 'k', 'l', 'a'],
    ])
  })

  it('has the prefix of its client on its keys, and not on what else it is given', async () => {
    const { sent, run } = scripted(() => 1, 'mine:')
    for (let times = 0; times < 2; times++) await run(['k', 'l'], ['a'])
    assert.deepEqual(
      sent.map((command) => command.slice(2)),
      [
        ['2', 'mine:k', 'mine:l', 'a'],
        ['2', 'mine:k', 'mine:l', 'a'],
      ],
    )
  })

  it('is sent again to a Redis that does not have it any more', async () => {
    let isGone = false
    const { sent, run } = scripted((name) => {
      if (isGone && name === 'evalsha') throw new Error('NOSCRIPT No matching script.')
      return name
    })
    await run([], [])
    isGone = true
    assert.equal(await run([], []), 'eval')
    isGone = false
    assert.equal(await run([], []), 'evalsha')
    assert.deepEqual(
      sent.map(([name]) => name),
      ['eval', 'evalsha', 'eval', 'evalsha'],
    )
  })

  it('is sent again until a call of it has been answered, and fails with what else fails', async () => {
    let fault: unknown = new Error('READONLY')
    const { sent, run } = scripted((name) => {
      if (fault !== undefined) throw fault
      return name
    })
    await assert.rejects(run([], []), /READONLY/)
    fault = undefined
    assert.equal(await run([], []), 'eval')
    for (fault of [new Error('BUSY NOSCRIPT'), 'NOSCRIPT']) {
      const thrown = fault
      await assert.rejects(run([], []), (error) => error === thrown)
    }
    assert.deepEqual(
      sent.map(([name]) => name),
      ['eval', 'eval', 'evalsha', 'evalsha'],
    )
  })
})
