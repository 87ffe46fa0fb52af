import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { GATEWAY_COMMAND, startProgram } from '../../support/gateway-process.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Loaded into each thread of the gateway. A thread is named before it loads anything; the first one is named when it ends. */
const REPORT = `data:text/javascript,${encodeURIComponent(`
  import { getCompileCacheDir } from 'node:module'
  import { isMainThread } from 'node:worker_threads'
  const report = (thread) => process._rawDebug(JSON.stringify({
    thread,
    cache: getCompileCacheDir(),
    stripsTypes: process.moduleLoadList.some((name) => name.includes('amaro')),
  }))
  if (isMainThread) process.once('exit', () => report('main'))
  else report('other')
`)}`

interface Thread {
  readonly thread: 'main' | 'other'
  readonly cache: string
  readonly stripsTypes: boolean
}

test('from its second start on, the command finds its code compiled in all threads', async () => {
  const threads: Thread[][] = []
  for (let start = 0; start < 2; start++) {
    const gateway = await startProgram(GATEWAY_COMMAND, ROOT, {
      NODE_COMPILE_CACHE: undefined,
      NODE_OPTIONS: `--import ${REPORT}`,
    })
    gateway.kill('SIGTERM')
    const { stderr } = await gateway.exited
    threads.push(
      stderr
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line)),
    )
  }

  const [, second = []] = threads
  assert.ok(second[0]?.cache)
  assert.ok(second.some(({ thread }) => thread === 'other'))
  assert.equal(new Set(second.map(({ cache }) => cache)).size, 1, JSON.stringify(second))
  // Code from the cache has no types to strip.
  assert.ok(second.every(({ thread, stripsTypes }) => thread === 'main' || !stripsTypes))
})
