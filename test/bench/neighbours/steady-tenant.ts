/** A worker: a tenant that sends calls at a steady rate, whatever becomes of them, and reports how long they took. */
import { parentPort, workerData } from 'node:worker_threads'
import { Agent, request } from 'undici'

/** The results of the calls in a window of time. */
export interface Window {
  readonly calls: number
  readonly p95: number
  readonly worst: number
  /** The wrong answers, each with its count. */
  readonly failures: Readonly<Record<string, number>>
}

const BETWEEN_CALLS_MS = 30
const GIVES_UP_AFTER_MS = 20_000

const { url, key } = workerData as { url: string; key: string }
const dispatcher = new Agent({ connections: 50 })
let number = 0

parentPort?.on('message', (windowMs: number) => {
  void steadyWindow(windowMs).then((window) => parentPort?.postMessage(window))
})

async function steadyWindow(windowMs: number): Promise<Window> {
  const times: number[] = []
  const failures: Record<string, number> = {}
  const pending: Promise<void>[] = []
  const begun = performance.now()
  for (let due = begun; due < begun + windowMs; due += BETWEEN_CALLS_MS) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
    pending.push(
      timedCall().then(({ ms, failure }) => {
        times.push(ms)
        if (failure) failures[failure] = (failures[failure] ?? 0) + 1
      }),
    )
  }
  await Promise.all(pending)
  times.sort((a, b) => a - b)
  const at = (share: number) => Math.round(times[Math.ceil(times.length * share) - 1] ?? 0)
  return { calls: times.length, p95: at(0.95), worst: at(1), failures }
}

async function timedCall(): Promise<{ ms: number; failure?: string }> {
  const begun = performance.now()
  const end = (failure?: string) => ({ ms: performance.now() - begun, ...(failure && { failure }) })
  try {
    const { statusCode, body } = await nextCall(AbortSignal.timeout(GIVES_UP_AFTER_MS))
    const text = await body.text()
    if (statusCode !== 200) return end(`${statusCode} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`)
    return text.includes('"error"') ? end(`200 with ${text.slice(-300)}`) : end()
  } catch (error) {
    return end(String(error))
  }
}

/** In turn: most of them plain, some streamed, some with an Idempotency-Key, and a look-up. */
function nextCall(signal: AbortSignal): ReturnType<typeof request> {
  const turn = number++ % 8
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  if (turn === 7) return request(`${url}/v1/models`, { dispatcher, headers, signal })
  const messages = [{ role: 'user', content: `hello ${number}` }]
  return request(`${url}/v1/chat/completions`, {
    dispatcher,
    method: 'POST',
    headers: { ...headers, ...(turn === 3 && { 'idempotency-key': `steady-${number}` }) },
    body: JSON.stringify({ model: 'chat', stream: turn % 3 === 2, messages }),
    signal,
  })
}
