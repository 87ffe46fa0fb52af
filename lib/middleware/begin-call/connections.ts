import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf, openedCallOf, upgradeOf } from '../../core/call/index.ts'
import { networkOf } from '../../core/client-address/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { aWholeNumber, checkOptions, type OptionRules } from '../../core/options/index.ts'
import { mostConnections, OTHER_DESCRIPTORS } from './connection-bound.ts'
import { noteProgress, type Progress } from './stalled-callers.ts'

/** Options of {@link Connections}. */
export interface ConnectionsOptions {
  /**
   * The most connections of callers. Beyond it, some are closed. Defaults to half of the process's descriptors beyond 128,
   * and at most one for each 128 KiB of its memory.
   */
  most?: number
  /** The most requests of one key whose bodies have not come whole. Defaults to 100. */
  uploadsPerKey?: number
}

const RULES: OptionRules<ConnectionsOptions> = {
  most: aWholeNumber('a whole number of connections from 1', 1),
  uploadsPerKey: aWholeNumber('a whole number of requests from 1', 1),
}

/** The states of a connection, in the order in which they give way. */
const STATES = {
  /** Its request has not come whole, or a write of its answer has not ended, for a second or more. */
  stuck: 0,
  idle: 1,
  /** Without a key, it has sent further requests behind the one that is being answered. */
  pipelined: 2,
  /** It is new, or its request is just coming. */
  coming: 3,
  /** Its request is being answered, and no money is held for it. */
  unpaid: 4,
  paid: 5,
} as const

type State = (typeof STATES)[keyof typeof STATES]

interface Connection {
  readonly socket: Socket
  /** Whether the server is watched, so that more is known of the connection than the requests to this app. */
  readonly isWatched: boolean
  /** The key or, without one, the address that the connection counts for. */
  owner: string
  /** The account of that key or, without one, the address. */
  account: string
  /** The request until it has come whole, and its response until that has closed. */
  req: IncomingMessage | undefined
  res: ServerResponse | undefined
  /** The key of the request. */
  key: string | undefined
  /** When the connection began, or its last answer ended; and the bytes received by then. */
  since: number
  read: number
  /** How often it was seen while the same request, or its head, was coming. */
  looks: number
  /** The bytes received when the time for the next part of the body began, and how often that was seen since. */
  partFrom: number
  partLooks: number
  readonly progress: Progress
  /** Begin the requests that wait for their turn. */
  waiting: (() => void)[]
  /** Note that the answer, or the connection, has closed. */
  readonly end: () => void
  readonly forget: () => void
}

/**
 * The most requests on a connection that may wait for the answer in front of them. Node parses all that have come in one
 * packet, which can be a thousand. Clients in use send one at a time.
 */
const MAX_WAITING = 32
/** The share of all connections that is closed at once to make room. */
const ROOM = 1 / 16
/** How many connections above the limit are tolerated until the callers of new ones are known. */
const MARGIN = OTHER_DESCRIPTORS / 2
/** Within this time, the first request of a new connection comes. */
const FIRST_REQUEST_MS = 1000
/** How long to wait before searching again for connections to close, if there were none. */
const NO_ROOM_MS = 100
const CHECK_INTERVAL_MS = 1000
/** A body that is being read must progress by PART_BYTES within PART_LOOKS checks. */
const PART_BYTES = 16 * 1024
const PART_LOOKS = 15
const RETRY_AFTER_MS = 1000

/**
 * Shares the connections of a process fairly among its callers. It knows for each connection the account and key of its
 * caller or, without them, the address, and what goes on. When connections run short, those of the account or address that
 * has the most are closed, and of those the ones of its key that has the most: first unfinished requests and unread
 * answers, then idle connections, and calls that money is held for last.
 *
 * - A connection has one request at a time. Further ones wait until its answer was taken.
 * - In every 15 s, 16 KiB of a body or its rest must arrive, else the answer is 408.
 * - A key has a maximum number of requests whose bodies have not come whole: `concurrency_limited`.
 *
 * @throws TypeError when an option is unusable.
 * @example
 * const connections = new Connections()
 * app.use(connections.inTurn, beginCall(), authenticate({ keys }), connections.admit)
 * connections.watch(createServer(app).listen(8787))
 */
export class Connections {
  readonly #all = new Map<Socket, Connection>()
  readonly #byKey = new Map<string, Set<Connection>>()
  readonly #most: number
  readonly #uploadsPerKey: number
  readonly #timer: NodeJS.Timeout
  /** Until when there is no room: among those of the caller that has most, and among those of all. */
  readonly #noRoomUntil = { most: 0, all: 0 }
  #makesRoom = false

  constructor(options: ConnectionsOptions = {}) {
    checkOptions('Connections', options, RULES)
    this.#most = options.most ?? mostConnections()
    this.#uploadsPerKey = options.uploadsPerKey ?? 100
    this.#timer = setInterval(() => this.#checkConnections(), CHECK_INTERVAL_MS).unref()
  }

  /**
   * Counts all connections of a server, from their beginning. Without it, only those with a request that {@link inTurn} has
   * got are known, until its answer ends.
   */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#all.size >= this.#most + MARGIN && !this.#makeRoom('all')) {
        socket.destroy()
        return
      }
      this.#add(socket, true)
    })
  }

  /** Mount it first: passes a request on when those before it on its connection are answered. */
  readonly inTurn: RequestHandler = (req: Request, res: Response, next: NextFunction): void => {
    const { socket } = req
    const known = this.#all.get(socket)
    // Of HTTP/2, a connection has many requests at a time by design.
    const isOther = req.httpVersionMajor !== 1 || !(socket instanceof Socket)
    if (isOther || (!known && socket.destroyed)) {
      next()
      return
    }
    const connection = known ?? this.#add(socket, false)
    if (connection.res === undefined) {
      begin(connection, req, res)
      next()
    } else if (connection.res === res) next()
    else if (connection.waiting.length >= MAX_WAITING) socket.destroy()
    else
      connection.waiting.push(
        AsyncResource.bind(() => {
          begin(connection, req, res)
          next()
        }),
      )
  }

  /** Mount it behind `authenticate`: notes the key, and refuses what it has too much of. */
  readonly admit: RequestHandler = (req: Request, res: Response, next: NextFunction): void => {
    const connection = this.#all.get(req.socket)
    const call = callOf(req)
    const { principal } = call
    if (connection?.res !== res || !principal || connection.key !== undefined) {
      next()
      return
    }
    const key = principal.keyId
    connection.key = key
    connection.owner = OF_KEY + key
    connection.account = OF_ACCOUNT + principal.accountId
    const ofKey = this.#byKey.get(key)
    if (ofKey) ofKey.add(connection)
    else this.#byKey.set(key, new Set([connection]))
    const isRefused = this.#hasTooManyUploads(connection, ofKey) || !this.#hasRoomFor(connection)
    if (isRefused) res.setHeader('connection', 'close')
    next(isRefused ? call.stamp(tooMany()) : undefined)
  }

  /**
   * Closes connections that have been idle since before a time. It runs after bytes that have arrived are read, so that no
   * request is lost.
   *
   * @param before a time of the monotonic clock.
   */
  endIdle(before: number): void {
    setImmediate(() => {
      for (const connection of this.#all.values())
        if (isIdle(connection) && connection.since < before) connection.socket.destroy()
    })
  }

  /** Whether a connection is open on which no request is coming or being answered. */
  get hasIdle(): boolean {
    return [...this.#all.values()].some(isIdle)
  }

  /** Ends the watch of bodies. */
  close(): void {
    clearInterval(this.#timer)
  }

  #add(socket: Socket, isWatched: boolean): Connection {
    const address = ofAddress(socket.remoteAddress)
    const connection: Connection = {
      socket,
      isWatched,
      owner: address,
      account: address,
      req: undefined,
      res: undefined,
      key: undefined,
      since: performance.now(),
      read: 0,
      looks: 0,
      partFrom: 0,
      partLooks: 0,
      progress: { done: -1, again: 0 },
      waiting: [],
      end: () => this.#end(connection),
      forget: () => this.#forget(connection),
    }
    this.#all.set(socket, connection)
    socket.on('close', connection.forget)
    if (this.#all.size > this.#most) this.#makeRoomSoon()
    return connection
  }

  #end(connection: Connection): void {
    const { req, socket, key } = connection
    const call = req && openedCallOf(req)
    if (key === undefined && call) {
      connection.owner = ofAddress(call.clientIp)
      connection.account = connection.owner
    }
    this.#leaveKey(connection)
    connection.res = undefined
    connection.since = performance.now()
    connection.looks = 0
    if (req?.complete) noteWhole(connection)
    if (socket.destroyed) return
    connection.waiting.shift()?.()
    if (!connection.res && !connection.isWatched) this.#forget(connection)
  }

  #leaveKey(connection: Connection): void {
    const { key } = connection
    if (key === undefined) return
    connection.key = undefined
    const ofKey = this.#byKey.get(key)
    ofKey?.delete(connection)
    if (ofKey?.size === 0) this.#byKey.delete(key)
  }

  #forget(connection: Connection): void {
    const { socket, forget } = connection
    this.#leaveKey(connection)
    this.#all.delete(socket)
    socket.off('close', forget)
    connection.waiting = []
  }

  /** @param others the other connections on which the key has a request. */
  #hasTooManyUploads({ req }: Connection, others: Set<Connection> | undefined): boolean {
    if (others === undefined || others.size <= this.#uploadsPerKey || !hasBody(req)) return false
    let uploads = 0
    for (const other of others) if (other.req !== req && isComing(other)) uploads++
    return uploads >= this.#uploadsPerKey
  }

  /**
   * Whether a request may stay now that its key is known. If there are too many, the account that has most gives way and, of
   * its keys, the one that has most.
   */
  #hasRoomFor(connection: Connection): boolean {
    const tooMany = this.#all.size - this.#most
    if (tooMany <= 0) return true
    const groups = this.#groups()
    const largest = groups[0] ?? []
    const own = groups.find((group) => group.includes(connection)) ?? []
    const isOfMost = own.length >= largest.length
    const keys = byKey(isOfMost ? own : largest)
    const ofKey = keys.find((each) => each.includes(connection))
    const isOwn = isOfMost && (ofKey?.length ?? 0) >= (keys[0]?.length ?? 0)
    const closed = keys
      .flat()
      .filter((each) => each !== connection && !(isOwn && stateOf(each) >= STATES.unpaid))
      .slice(0, tooMany)
    for (const each of closed) this.#close(each)
    return !isOwn || closed.length > 0
  }

  /** Makes room after bytes that have arrived are read: a connection may be idle only because its request is not read yet. */
  #makeRoomSoon(): void {
    if (this.#makesRoom) return
    this.#makesRoom = true
    setImmediate(() => {
      this.#makesRoom = false
      if (this.#all.size > this.#most) this.#makeRoom('most')
    })
  }

  /**
   * Closes connections of the account or address that has most of them, or, if there is no room else, of the next one. Calls that money is
   * held for go on: the new connection may be of their own caller.
   */
  #makeRoom(among: 'most' | 'all'): boolean {
    const now = performance.now()
    if (now < this.#noRoomUntil[among]) return false
    const groups = this.#groups()
    const most = groups[0]?.length ?? 0
    for (const group of groups) {
      if (among === 'most' && group.length < most) break
      const closable = byKey(group)
        .flat()
        .filter((each) => stateOf(each) < STATES.paid)
      if (closable.length === 0) continue
      const needed = Math.max(1, this.#all.size - this.#most)
      const lead = most - (groups[1]?.length ?? 0)
      const more = Math.min(lead, Math.ceil(this.#most * ROOM))
      for (const [i, each] of closable.entries())
        if (i < needed || (i < more && stateOf(each) <= STATES.idle)) this.#close(each)
      return true
    }
    this.#noRoomUntil[among] = now + NO_ROOM_MS
    return false
  }

  /** Returns the connections of each account or address, those of the one that has most first. */
  #groups(): Connection[][] {
    return [...Map.groupBy(this.#all.values(), accountOf).values()].sort((a, b) => b.length - a.length)
  }

  #close(connection: Connection): void {
    const { res, key, socket } = connection
    this.#forget(connection)
    // Output that the caller has not yet read would delay the refusal, and the end of the connection.
    if (res && key !== undefined && isComing(connection) && socket.writableLength === 0)
      callOf(res.req).abort(tooMany())
    else socket.destroy()
  }

  /** Looks are counted, and not the time: what comes shows only while this process runs, which can be stopped. */
  #checkConnections(): void {
    for (const connection of this.#all.values()) {
      noteProgress(connection.socket, connection.progress)
      if (connection.req?.complete && !connection.res) noteWhole(connection)
      if (!isComing(connection)) continue
      connection.looks++
      if (connection.req) this.#checkPace(connection, connection.req)
    }
  }

  /** Refuses a request whose body comes too slowly. While nobody reads it, its caller is not to blame. */
  #checkPace(connection: Connection, req: IncomingMessage): void {
    const { socket, res } = connection
    if (socket.bytesRead - connection.partFrom >= PART_BYTES || req.readableLength > 0) {
      connection.partFrom = socket.bytesRead
      connection.partLooks = 0
    } else if (++connection.partLooks > PART_LOOKS) {
      if (res) callOf(res.req).abort(tooSlow())
      else socket.destroy()
    }
  }
}

function begin(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
  connection.req = req
  connection.res = res
  connection.looks = 0
  connection.partFrom = connection.socket.bytesRead
  connection.partLooks = 0
  res.on('close', connection.end)
}

/** Notes that the request has come whole: more bytes are the beginning of another one. */
function noteWhole(connection: Connection): void {
  connection.req = undefined
  connection.read = connection.socket.bytesRead
}

function isIdle({ req, res, socket, read }: Connection): boolean {
  return !req && !res && socket.bytesRead === read
}

/** Whether a request, or the head of one, has begun to come and is not whole. */
function isComing({ req, res, socket, read }: Connection): boolean {
  if (req) return !req.complete && upgradeOf(req) === undefined
  return !res && socket.bytesRead > read
}

function stateOf(connection: Connection): State {
  const { req, res, socket, key, since, looks, progress, waiting } = connection
  if (isComing(connection)) return looks > 0 ? STATES.stuck : STATES.coming
  if (res) {
    if (progress.again > 0) return STATES.stuck
    if (key === undefined && waiting.length > 0) return STATES.pipelined
    const billing = req && openedCallOf(req)?.billing
    return (billing?.reserved ?? null) === null ? STATES.unpaid : STATES.paid
  }
  const isNew = socket.bytesRead === 0 && performance.now() - since < FIRST_REQUEST_MS
  return isNew ? STATES.coming : STATES.idle
}

/** Sorts those first that give way first: the oldest and, of calls with money, the last begun, which have done least. */
function inOrder(a: Connection, b: Connection): number {
  const state = stateOf(a)
  return state - stateOf(b) || (state === STATES.paid ? b.since - a.since : a.since - b.since)
}

/** Returns the connections of each key in the order in which they give way, those of the key that has most first. */
function byKey(group: readonly Connection[]): Connection[][] {
  const keys = [...Map.groupBy(group, ownerOf).values()].map((each) => each.sort(inOrder))
  return keys.sort((a, b) => b.length - a.length || inOrder(a[0] as Connection, b[0] as Connection))
}

const OF_KEY = 'key '
const OF_ACCOUNT = 'account '

function ofAddress(address: string | null | undefined): string {
  return `address ${address ? networkOf(address) : ''}`
}

/** Until its key is known, a request counts for that of the request before it. */
function ownerOf(connection: Connection): string {
  return addressOf(connection) ?? connection.owner
}

function accountOf(connection: Connection): string {
  return addressOf(connection) ?? connection.account
}

/** Returns the address of the running request; undefined if there is none, or if the connection counts for a key. */
function addressOf({ owner, req }: Connection): string | undefined {
  const call = owner.startsWith(OF_KEY) ? undefined : req && openedCallOf(req)
  return call && ofAddress(call.clientIp)
}

function hasBody(req: IncomingMessage | undefined): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req?.headers ?? {}
  return length !== '0' || encoding !== undefined
}

function tooMany(): GatewayError {
  return new GatewayError('concurrency_limited', {
    message:
      'This API key, or its account, has too many unfinished requests at the moment. Send their bodies whole, then retry.',
    retryAfterMs: RETRY_AFTER_MS,
  })
}

function tooSlow(): GatewayError {
  return new GatewayError('invalid_request', {
    status: 408,
    message: 'The body did not arrive in time. Send it again, faster.',
    shouldRetry: true,
  })
}
