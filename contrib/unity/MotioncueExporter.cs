// Sends what a vehicle of Vehicle Physics Pro does to motioncue: one UDP packet from the physics step.
//
// Add it to the vehicle, or to any object below it.  See README.md beside this file; the packet is described in
// motioncue/sources/vehicle_physics_pro/packets.py, whose version 1 this is.  MIT license, as the rest of motioncue.

using System;
using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.InteropServices;
using UnityEngine;
using VehiclePhysics;

[AddComponentMenu("Vehicle Physics/Telemetry/Motioncue Exporter")]
public class MotioncueExporter : VehicleBehaviour
{
    [Tooltip("Where motioncue runs: an address or a name")]
    public string host = "127.0.0.1";

    [Tooltip("The UDP port of motioncue's profile (source.endpoint)")]
    public int port = 42425;

    [Tooltip("Send at every n-th physics step")]
    [Range(1, 100)]
    public int every = 1;

    [Tooltip("Send the rest of the data bus too: race inputs, custom values, overrides of axle locks and gears")]
    public bool more = false;

    const int Version = 1;
    const int Size = 356;
    const int NotANumber = -2147483647;     // as the data bus has it

    const int Old = 21, Newer = 22;         // the id that AidedSteer has in each SDK

    const int Everything = 1 | 2 | 4 | 8;   // carried: motion, Input, Vehicle, Settings

    const int InputAt = 100, InputCount = 16;
    const int VehicleAt = 164, VehicleCount = 32;
    const int SettingsAt = 292, SettingsCount = 16;

    const int MoreSize = 504;
    const int RaceInputAt = 40, RaceInputCount = 16;
    const int CustomAt = 104, CustomCount = 100;
    static readonly string[] Named =
        { "FrontDifferentialLock", "RearDifferentialLock", "MinGearOverride", "MaxGearOverride" };
    static readonly int[] Nothing = new int[0];

    // All there is to allocate is allocated when the vehicle is enabled.
    readonly byte[] m_first = new byte[Size];
    readonly byte[] m_more = new byte[MoreSize];
    readonly int[] m_named = new int[4];    // ids of the named settings; -1: this SDK has no such name
    int m_raceInput, m_custom;              // ids of the channels; -1: this SDK has none
    byte[] m_packet;                        // the one that is being filled
    Socket m_socket;
    uint m_counter;
    int m_steps;
    bool m_turned;                          // there is an angular velocity to compare with
    Vector3 m_lastAngularVelocity;

    public override void OnEnableVehicle()
    {
        // The ids are compiled in: this one tells the SDKs apart, whatever the arrays' lengths.
        int sdk = VehicleData.AidedSteer;
        if (sdk != Old && sdk != Newer)
        {
            DebugLogError("Motioncue: this version of Vehicle Physics Pro numbers its data bus in an unknown way");
            enabled = false;
            return;
        }

        try
        {
            IPAddress address;
            if (!IPAddress.TryParse(host, out address)) address = Dns.GetHostAddresses(host)[0];
            m_socket = new Socket(address.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            m_socket.Blocking = false;      // physics waits for no network
            m_socket.Connect(new IPEndPoint(address, port));
        }
        catch (Exception error)             // a name without address, a port that cannot be, no network
        {
            DebugLogError("Motioncue: cannot send to " + host + ", port " + port + ": " + error.Message);
            Close();
            enabled = false;
            return;
        }

        int carried = 4;
        m_raceInput = Id(typeof(Channel), "RaceInput");
        m_custom = Id(typeof(Channel), "Custom");
        if (m_raceInput >= 0) carried |= 1;
        if (m_custom >= 0) carried |= 2;
        for (int place = 0; place < Named.Length; place++) m_named[place] = Id(typeof(SettingsData), Named[place]);
        PutHead(m_first, 'P', sdk, Everything);
        PutHead(m_more, 'X', sdk, carried);
        m_steps = 0;
        m_turned = false;
    }

    public override void OnDisableVehicle()
    {
        Close();
    }

    public override void OnReposition()
    {
        m_turned = false;
    }

    // After each step of the vehicle's physics: no allocation, nothing that waits, nothing that throws.
    public override void FixedUpdateVehicle()
    {
        if (m_socket == null) return;

        Rigidbody body = vehicle.cachedRigidbody;
        Quaternion attitude = body.rotation;
        Quaternion toCar = Quaternion.Inverse(attitude);
        Vector3 angularVelocity = toCar * body.angularVelocity;
        Vector3 angularAcceleration = Vector3.zero;
        if (m_turned) angularAcceleration = (angularVelocity - m_lastAngularVelocity) / Time.fixedDeltaTime;
        m_lastAngularVelocity = angularVelocity;
        m_turned = true;

        if (m_steps++ % Math.Max(every, 1) != 0) return;

        m_packet = m_first;
        Put32(12, unchecked((int)m_counter++));
        PutDouble(16, Now());
        PutFloat(24, attitude.x);
        PutFloat(28, attitude.y);
        PutFloat(32, attitude.z);
        PutFloat(36, attitude.w);
        PutVector(40, body.worldCenterOfMass);
        PutVector(52, toCar * Velocity(body));
        PutVector(64, vehicle.localAcceleration);
        PutVector(76, angularVelocity);
        PutVector(88, angularAcceleration);
        PutChannel(InputAt, InputCount, vehicle.data.Get(Channel.Input));
        PutChannel(VehicleAt, VehicleCount, vehicle.data.Get(Channel.Vehicle));
        PutChannel(SettingsAt, SettingsCount, vehicle.data.Get(Channel.Settings));

        Send();
        if (more) SendMore();
    }

    void SendMore()
    {
        m_packet = m_more;
        Put32(12, unchecked((int)(m_counter - 1)));
        PutDouble(16, Now());
        int[] settings = vehicle.data.Get(Channel.Settings);
        for (int place = 0; place < m_named.Length; place++)
        {
            int id = m_named[place];
            Put32(24 + 4 * place, id >= 0 && id < settings.Length ? settings[id] : NotANumber);
        }
        PutChannel(RaceInputAt, RaceInputCount, m_raceInput >= 0 ? vehicle.data.Get(m_raceInput) : Nothing);
        PutChannel(CustomAt, CustomCount, m_custom >= 0 ? vehicle.data.Get(m_custom) : Nothing);
        Send();
    }

    void Send()
    {
        // What the network does not take is lost; nobody listening is no error either.
        SocketError ignored;
        m_socket.Send(m_packet, 0, m_packet.Length, SocketFlags.None, out ignored);
    }

    // Names that not every SDK has are looked up, so that this compiles with all of them.
    static int Id(Type type, string name)
    {
        FieldInfo field = type.GetField(name);
        return field == null ? -1 : (int)field.GetValue(null);
    }

    void PutHead(byte[] packet, char kind, int sdk, int carried)
    {
        m_packet = packet;
        packet[0] = (byte)'M';
        packet[1] = (byte)'C';
        packet[2] = (byte)'V';
        packet[3] = (byte)kind;
        Put16(4, Version);
        Put16(6, packet.Length);
        packet[8] = (byte)(sdk == Old ? 'O' : 'N');
        packet[9] = (byte)(sdk == Old ? 'L' : 'W');
        packet[10] = (byte)carried;
        packet[11] = (byte)(255 - carried);
    }

    static double Now()
    {
#if UNITY_2020_2_OR_NEWER
        return Time.fixedTimeAsDouble;
#else
        return Time.fixedTime;              // a float: after some hours its steps become uneven
#endif
    }

    static Vector3 Velocity(Rigidbody body)
    {
#if UNITY_6000_0_OR_NEWER
        return body.linearVelocity;
#else
        return body.velocity;
#endif
    }

    void Close()
    {
        if (m_socket != null) m_socket.Close();
        m_socket = null;
    }

    // Little-endian, whatever the machine.

    void Put16(int at, int value)
    {
        m_packet[at] = unchecked((byte)value);
        m_packet[at + 1] = unchecked((byte)(value >> 8));
    }

    void Put32(int at, int value)
    {
        Put16(at, value);
        Put16(at + 2, value >> 16);
    }

    void PutDouble(int at, double value)
    {
        long bits = BitConverter.DoubleToInt64Bits(value);
        Put32(at, unchecked((int)bits));
        Put32(at + 4, unchecked((int)(bits >> 32)));
    }

    void PutFloat(int at, float value)
    {
        FloatBits bits = new FloatBits();   // a struct: nothing is allocated
        bits.value = value;
        Put32(at, bits.bits);
    }

    void PutVector(int at, Vector3 value)
    {
        PutFloat(at, value.x);
        PutFloat(at + 4, value.y);
        PutFloat(at + 8, value.z);
    }

    void PutChannel(int at, int count, int[] values)
    {
        for (int id = 0; id < count; id++)
            Put32(at + 4 * id, id < values.Length ? values[id] : NotANumber);
    }

    [StructLayout(LayoutKind.Explicit)]
    struct FloatBits
    {
        [FieldOffset(0)] public float value;
        [FieldOffset(0)] public int bits;
    }
}
