// From bytes on a serial line to words on a bus: the protocol of docs/board.md section 3. A message takes effect only
// when its CRC is right, and one with the number of the last one done is answered again and not done again.
`default_nettype none

module npu_bridge #(
  parameter CLOCKS = 16,
  // Cycles without a byte that end a message.
  parameter PAUSE = 4096
) (
  input wire clock,
  input wire reset,
  input wire rx,
  output wire tx,
  output reg bus_write,
  output reg bus_read,
  output reg [31:0] bus_address,
  output reg [31:0] bus_data,
  input wire bus_valid,
  input wire [31:0] bus_word
);
  localparam [7:0] DONE = 0;
  localparam [7:0] DAMAGED = 1;
  localparam [7:0] UNKNOWN = 2;
  localparam [7:0] NOT_THERE = 3;
  localparam [7:0] SYNC = 0;
  localparam [7:0] WRITE = 1;
  localparam [7:0] READ = 2;

  wire came;
  wire broken;
  wire [7:0] byte_in;
  npu_uart_rx #(.CLOCKS(CLOCKS)) receiver (
    .clock(clock), .reset(reset), .line(rx), .valid(came), .broken(broken), .data(byte_in)
  );
  reg send;
  reg [7:0] byte_out;
  wire ready;
  npu_uart_tx #(.CLOCKS(CLOCKS)) sender (
    .clock(clock), .reset(reset), .send(send), .data(byte_out), .ready(ready), .line(tx)
  );

  function [31:0] crc_after(input [31:0] start, input [7:0] one);
    // CRC-32 of IEEE 802.3, lowest bit first.
    integer i;
    begin
      crc_after = start ^ {24'd0, one};
      for (i = 0; i < 8; i = i + 1)
        crc_after = (crc_after >> 1) ^ (crc_after[0] ? 32'hedb88320 : 32'd0);
    end
  endfunction
  // What stands in the register behind a message and its CRC.
  localparam [31:0] RIGHT = 32'hdebb20e3;

  // --- a message: length of the payload, number, command, payload, CRC (lowest byte first) ---

  localparam [2:0] RECEIVE = 0;
  // A damaged message: its bytes are passed over until a pause.
  localparam [2:0] SKIP = 1;
  localparam [2:0] JUDGE = 2;
  localparam [2:0] GATHER = 3;
  localparam [2:0] ACT = 4;
  localparam [2:0] FETCH = 5;
  localparam [2:0] ANSWER = 6;
  localparam [2:0] CHECK = 7;
  reg [2:0] state;
  reg [8:0] place;
  reg [7:0] length;
  reg [7:0] number;
  reg [7:0] command;
  reg [31:0] crc;
  reg [7:0] payload [0:255];
  reg [7:0] taken;
  // From a register behind the memory, which is a slow block.
  reg [7:0] payload_read;
  reg [7:0] payload_byte;
  wire [8:0] payload_place = place - 9'd3;
  // Places move on with bytes only, so what they mean is known a cycle later, from registers.
  reg in_payload;
  reg last_byte;
  always @(posedge clock) begin
    in_payload <= place >= 3 && payload_place < {1'b0, length};
    last_byte <= place >= 3 && payload_place == {1'b0, length} + 9'd3;
    if (state == RECEIVE && came && in_payload) payload[payload_place[7:0]] <= byte_in;
    payload_read <= payload[taken];
    payload_byte <= payload_read;
  end

  localparam W_PAUSE = $clog2(PAUSE + 1);
  reg [W_PAUSE-1:0] silence;
  wire paused = silence == PAUSE;
  // A byte while an answer is under way belongs to no message.
  reg disturbed;

  // The last message that was done.
  reg known;
  reg [7:0] last;
  wire again = known && number == last;

  // --- acting: words are gathered byte by byte, the first one is the address ---

  reg [1:0] octet;
  reg addressed;
  reg [31:0] word;
  reg [1:0] gather_wait;
  wire [31:0] gathered = {payload_byte, word[31:8]};
  wire [3:0] space = bus_address[31:28];
  wire may_write = (space >= 1 && space <= 8) || space == 10;
  wire may_read = space == 9 || space == 10;

  // --- an answer: length, number, status, payload, CRC ---

  reg [8:0] out_place;
  reg [7:0] out_length;
  reg [7:0] status;
  reg [31:0] out_crc;
  reg [31:0] out_word;
  reg word_ready;
  wire [8:0] out_payload = out_place - 9'd3;
  // Likewise from registers: a byte goes out in many cycles.
  reg settled;
  reg out_in_payload;
  reg out_last;
  reg out_more;
  reg out_there;
  wire [1:0] crc_byte = out_payload[1:0] - out_length[1:0];
  reg [7:0] next_out;
  always @(posedge clock) begin
    out_in_payload <= out_place >= 3 && out_payload < {1'b0, out_length};
    out_last <= out_place >= 3 && out_payload == {1'b0, out_length} + 9'd3;
    out_more <= out_payload + 9'd1 < {1'b0, out_length};
    out_there <= word_ready;
    case (out_place)
      0: next_out <= out_length;
      1: next_out <= number;
      2: next_out <= status;
      default: next_out <= out_place >= 3 && out_payload < {1'b0, out_length}
        ? out_word[7:0] : ~out_crc[8*crc_byte +: 8];
    endcase
  end

  task answer(input [7:0] saying);
    begin
      state <= ANSWER;
      status <= saying;
      out_place <= 9'd0;
      out_length <= 8'd0;
      out_crc <= 32'hffffffff;
      word_ready <= 1'b0;
      settled <= 1'b0;
    end
  endtask

  always @(posedge clock) begin
    bus_write <= 1'b0;
    bus_read <= 1'b0;
    send <= 1'b0;
    silence <= came ? {W_PAUSE{1'b0}} : silence + !paused;
    if (came && state != RECEIVE && state != SKIP) disturbed <= 1'b1;
    case (state)
      RECEIVE: begin
        octet <= 2'd0;
        addressed <= 1'b0;
        taken <= 8'd0;
        gather_wait <= 2'd2;
        if (place == 0) begin
          crc <= 32'hffffffff;
          if (came) crc <= crc_after(32'hffffffff, byte_in);
          length <= byte_in;
        end else if (came) crc <= crc_after(crc, byte_in);
        if (came && place == 1) number <= byte_in;
        if (came && place == 2) command <= byte_in;
        if (came) begin
          place <= place + 1'b1;
          if (broken) state <= SKIP;
          else if (last_byte && place != 0) state <= JUDGE;
        end else if (place != 0 && paused) state <= SKIP;
      end
      SKIP: if (paused && !came) answer(DAMAGED);
      JUDGE:
        if (crc != RIGHT) state <= SKIP;
        else if (command == SYNC && length == 0) begin
          known <= 1'b1;
          last <= number;
          answer(DONE);
        end else if (command == WRITE && length >= 8 && length[1:0] == 0) begin
          if (again) answer(DONE);
          else state <= GATHER;
        end else if (command == READ && length == 8) state <= GATHER;
        else answer(UNKNOWN);
      GATHER:
        // A byte of the payload is there two cycles after its place.
        if (gather_wait != 0) gather_wait <= gather_wait - 1'b1;
        else begin
          gather_wait <= 2'd2;
          word <= gathered;
          taken <= taken + 1'b1;
          octet <= octet + 1'b1;
          if (octet == 3) begin
            if (!addressed) begin
              addressed <= 1'b1;
              bus_address <= gathered;
              state <= CHECK;
            end else state <= ACT;
          end
        end
      // From the address's register: from the payload's memory it would be the longest path of the bridge.
      CHECK:
        if (command == WRITE ? may_write : may_read) state <= GATHER;
        else answer(NOT_THERE);
      ACT:
        if (command == WRITE) begin
          bus_write <= 1'b1;
          bus_data <= word;
          // The address of the next word, once this one is written.
          state <= FETCH;
        end else begin
          known <= 1'b1;
          last <= number;
          answer(DONE);
          // The second word is the number of words; as many as an answer can have.
          out_length <= word[31:6] == 0 ? {word[5:0], 2'b00} : 8'd252;
          bus_read <= word != 0;
        end
      FETCH: begin
        // Words of a message follow each other within their space and core.
        bus_address[23:0] <= bus_address[23:0] + 1'b1;
        state <= GATHER;
        if (taken == length) begin
          known <= 1'b1;
          last <= number;
          answer(DONE);
        end
      end
      ANSWER: begin
        if (bus_valid) begin
          out_word <= bus_word;
          word_ready <= 1'b1;
        end
        settled <= 1'b1;
        if (ready && !send && settled && (!out_in_payload || out_there)) begin
          send <= 1'b1;
          byte_out <= next_out;
          if (out_place < 3 || out_in_payload) out_crc <= crc_after(out_crc, next_out);
          out_place <= out_place + 1'b1;
          if (out_in_payload) begin
            out_word <= out_word >> 8;
            if (out_payload[1:0] == 3) begin
              word_ready <= 1'b0;
              bus_address[23:0] <= bus_address[23:0] + 1'b1;
              bus_read <= out_more;
            end
          end
          if (out_last) begin
            state <= disturbed || came ? SKIP : RECEIVE;
            disturbed <= 1'b0;
            place <= 9'd0;
          end
        end
      end
      default: state <= RECEIVE;
    endcase
    if (reset) begin
      state <= RECEIVE;
      place <= 9'd0;
      known <= 1'b0;
      disturbed <= 1'b0;
      silence <= {W_PAUSE{1'b0}};
    end
  end
endmodule

`default_nettype wire
