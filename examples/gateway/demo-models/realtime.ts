import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { asObject, type JsonObject } from './prompt.ts'
import { newId } from './text-endpoint.ts'

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** Serves `/v1/realtime`: sessions of the realtime API whose answers repeat the input. */
export class DemoRealtime {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  })

  /** Begins a session on an upgraded connection. */
  accept(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(req, socket, head, (session) => converse(session))
  }

  /** Ends all sessions. */
  close(): void {
    for (const session of this.#server.clients) session.terminate()
  }
}

function converse(socket: WebSocket): void {
  const inputs: string[] = []
  const session = { id: newId('sess_demo_'), object: 'realtime.session', model: 'demo-realtime' }
  const say = (type: string, members: object = {}): void =>
    socket.send(JSON.stringify({ type, event_id: newId('event_demo_'), ...members }))

  socket.on('error', () => socket.terminate())
  socket.on('message', (data) => {
    const event = parse(String(data))
    switch (event?.type) {
      case 'session.update':
        return say('session.updated', { session: { ...session, ...asObject(event.session) } })
      case 'conversation.item.create':
        inputs.push(textOf(asObject(event.item)))
        return say('conversation.item.added', { item: { id: newId('item_demo_'), ...asObject(event.item) } })
      case 'response.create':
        return respond(say, inputs.splice(0).join(' '))
      default: {
        const message = `The demo does not know the event "${String(event?.type)}".`
        return say('error', { error: { type: 'invalid_request_error', message } })
      }
    }
  })
  say('session.created', { session })
}

function respond(say: (type: string, members?: object) => void, inputs: string): void {
  const response = { id: newId('resp_demo_'), object: 'realtime.response' }
  const text = `This is a demo. You said: ${inputs === '' ? 'nothing' : inputs}`
  say('response.created', { response: { ...response, status: 'in_progress' } })
  for (const delta of text.match(/\S+\s*/g) ?? []) {
    say('response.output_text.delta', { response_id: response.id, delta })
  }
  say('response.output_text.done', { response_id: response.id, text })
  say('response.done', { response: { ...response, status: 'completed' } })
}

function textOf(item: JsonObject | undefined): string {
  const parts = Array.isArray(item?.content) ? item.content.map(asObject) : []
  return parts.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
}

function parse(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}
