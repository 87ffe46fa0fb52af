import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { watchUnread } from '../../../lib/middleware/forward/relayed-socket.ts'
import { Side, turn } from './relay-sides.ts'

describe('a socket that nobody reads yet', () => {
  it('is closed when its caller ends it', async () => {
    for (const said of ['', 'words']) {
      const side = new Side(false)
      watchUnread(side)
      if (said) side.push(said)
      side.push(null)
      await turn()
      assert.equal(side.destroyed, said === '', 'what was said waits for who reads it')
      side.destroy()
    }
  })

  it('keeps what has come, and is not watched once it is read', async () => {
    const side = new Side(false)
    const stop = watchUnread(side)
    side.push('words')
    await turn()
    stop()
    assert.equal(String(side.read()), 'words')
    side.push(null)
    side.resume()
    await turn()
    assert.equal(side.destroyed, false)
    for (const event of ['readable', 'end']) assert.equal(side.listenerCount(event), 0, event)
    side.destroy()
  })
})
