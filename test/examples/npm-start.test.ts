import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const { PATH, HOME, NODE_COMPILE_CACHE } = process.env

it('npm start hands on the signal that it is sent, and ends when the gateway has', async (t) => {
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: ROOT,
    env: { PATH, HOME, NODE_COMPILE_CACHE, PORT: '0', DATABASE_URL: 'memory:' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // Of a group of its own, so that whatever it has started can be ended with it.
    detached: true,
  })
  t.after(() => endGroup(npm.pid as number))
  const exited = once(npm, 'exit')
  let said = ''
  npm.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const origin = () => /ready at (http:\S+)/.exec(said)?.[1]
  await until(() => origin() !== undefined, 'the gateway that npm has started', 50_000)
  const url = `${origin()}/healthz`
  assert.equal((await fetch(url)).status, 200)

  // To npm alone, as a supervisor sends it.
  npm.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
  assert.match(said, /"draining"/)
  await assert.rejects(fetch(url), 'nobody listens any more')
})

function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // None of it is left.
  }
}
