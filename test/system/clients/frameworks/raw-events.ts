import { createParser } from 'eventsource-parser'

/** An event of a stream, as JSON. */
export type RawEvent = { readonly type: string } & Readonly<Record<string, unknown>>

/** Sends a body as it is, and reads all events of the answer; throws what a refusal says. */
export async function postForEvents(
  url: string,
  headers: Record<string, string>,
  body: object,
): Promise<RawEvent[]> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
  const events: RawEvent[] = []
  createParser({ onEvent: ({ data }) => void events.push(JSON.parse(data)) }).feed(text)
  const failure = events.find(({ type }) => type === 'error' || type === 'response.failed')
  if (failure) throw new Error(JSON.stringify(failure))
  return events
}
