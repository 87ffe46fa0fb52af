import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createApp } from '../../examples/cached-answers/app.ts'
import { serveApp } from '../support/app-server.ts'

it('the example answers a repeated question of the same user from its cache', async (t) => {
  const asked: string[] = []
  const translate = async (text: string): Promise<string> => {
    asked.push(text)
    return text.toUpperCase()
  }
  const server = await serveApp((app) => app.use(createApp({ translate })))
  t.after(() => server.close())
  const ask = async (user?: string) => {
    const response = await fetch(`${server.url}/translations`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(user && { 'x-user': user }) },
      body: '{"text":"hello"}',
    })
    assert.deepEqual(await response.json(), { text: 'HELLO' })
    return response.headers.get('x-gateway-cache')
  }
  assert.deepEqual([await ask('ann'), await ask('ann'), await ask('ben')], ['miss', 'hit', 'miss'])
  assert.deepEqual([await ask(), await ask()], [null, null])
  assert.equal(asked.length, 4)
})
