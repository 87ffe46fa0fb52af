import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { message } from './requests.ts'

describe('the user of Claude Code on an OpenAI-style line', () => {
  it('is the same in each session', () => {
    const device = 'a'.repeat(64)
    const userIn = (user_id: string) => message.translate({ metadata: { user_id } }).user
    const sessions = ['0b2a5d3c-1111-4222-8333-944455566677', '0b2a5d3c-1111-4222-8333-944455566678']
    const users = sessions.flatMap((session) => [
      userIn(`user_${device}_account__session_${session}`),
      userIn(JSON.stringify({ device_id: device, account_uuid: '', session_id: session })),
    ])
    assert.match(String(users[0]), /^[0-9a-f]{64}$/)
    assert.equal(new Set(users).size, 1)
    assert.notEqual(userIn(`user_${'b'.repeat(64)}_account__session_${sessions[0]}`), users[0])
  })
})
